#include "spec/audit/readers/unread_trainers.hpp"

#include <algorithm>
#include <array>
#include <cctype>

namespace assay::spec::audit {
namespace {

struct Sight {
  std::string_view trainer;
  std::array<std::string_view, 3> words;  ///< all of them, in this order
};
/// Read in the sources, or in logs of public issues.
constexpr Sight sights[] = {
    {"Assay", {"assay ", ": training ", ""}},
    {"Assay", {"step ", "  norm ", " tok/s  MFU "}},
    {"DeepSpeed", {"RunningAvgSamplesPerSec=", "CurrSamplesPerSec=", ""}},
    {"DeepSpeed", {"log_dist] [Rank", "step=", "lr=["}},
    {"nanochat", {"step ", "| lrm: ", "tok/sec: "}},
    {"torchtune", {"Step ", "loss:", "tokens_per_second_per_gpu:"}},
    {"torchtune", {"|", "|Loss: ", "%|"}},
    {"LitGPT", {"iter ", "| loss train: ", "| iter time: "}},
    {"surogate", {"step ", "| norm ", "| tps "}},
    {"surogate", {"step ", "| loss", "tok/s "}},
    {"MaxText", {"completed step: ", "seconds: ", "TFLOP/s/device: "}},
    {"NeMo", {"global_step: ", "reduced_train_loss: ", ""}},
    {"OLMo", {"train/CrossEntropyLoss=", "", ""}},
    {"OLMo", {"throughput/device/tokens_per_second=", "", ""}},
    {"llama2.c", {" | loss ", " | lr ", "ms | mfu "}},
    {"prime-rl", {"step: ", "loss: ", "tokens_per_second: "}},
    {"fairseq", {"loss=", "wps=", "wpb="}},
    {"fairseq", {"| loss ", "| wps ", "| wpb "}},
    {"tinygrad", {"s run, ", " loss, ", " GFLOPS"}},
};

/// Whether it holds a number like 1e400.
bool beyond_numbers(std::string_view line) {
  const auto digit = [&](std::size_t k) { return k < line.size() && line[k] >= '0' && line[k] <= '9'; };
  for (std::size_t at = line.find_first_of("eE"); at != std::string_view::npos;
       at = line.find_first_of("eE", at + 1)) {
    if (at == 0 || !(digit(at - 1) || line[at - 1] == '.')) continue;
    std::size_t from = at + 1, power = 0;
    if (from < line.size() && line[from] == '+') ++from;
    // A number stands before it, and no word or hash around it.
    std::size_t first = at;
    while (first > 0 && (digit(first - 1) || line[first - 1] == '.')) --first;
    if (first > 0 && std::isalnum(static_cast<unsigned char>(line[first - 1]))) continue;
    for (; digit(from) && power < 1'000'000; ++from)
      power = 10 * power + static_cast<std::size_t>(line[from] - '0');
    const bool ends = from == line.size() || !std::isalnum(static_cast<unsigned char>(line[from]));
    if (power > 308 && ends) return true;
  }
  return false;
}

}  // namespace

std::string_view unread_trainer(std::string_view line) {
  for (const Sight& sight : sights) {
    std::size_t at = 0;
    const bool seen = std::all_of(sight.words.begin(), sight.words.end(), [&](std::string_view word) {
      at = line.find(word, at);
      if (at == std::string_view::npos) return false;
      at += word.size();
      return true;
    });
    if (seen) return sight.trainer;
  }
  return {};
}

std::string_view unread_part(std::string_view line) {
  for (const std::string_view key : {"\"log_history\":", "\"training_iterations\":"})
    if (const std::size_t at = line.find(key); at != std::string_view::npos) {
      const std::size_t value = line.find_first_not_of(" \t", at + key.size());
      if (value != std::string_view::npos && line[value] != '[' && line[value] != '\r')
        return "a JSON document whose steps are no list: give it as its trainer wrote it";
      return "a JSON document that other text stands around: give the document alone, without fences and "
             "quotation marks";
    }
  if (beyond_numbers(line))
    return "numbers with an exponent above 308, which no number here reaches, and so is not read: what is "
           "infinite is written inf";
  if (line.find("'train_runtime': ") != std::string_view::npos)
    return "a Hugging Face summary, and no line of its run's steps is there to hold it against: give the "
           "console from its first loss on, or trainer_state.json";
  return {};
}

}  // namespace assay::spec::audit
