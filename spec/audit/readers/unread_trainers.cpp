#include "spec/audit/readers/unread_trainers.hpp"

#include <algorithm>
#include <array>

namespace assay::spec::audit {
namespace {

struct Sight {
  std::string_view trainer;
  std::array<std::string_view, 3> words;  ///< all of them, in this order
};
/// Read in the sources, or in logs of public issues.
constexpr Sight sights[] = {
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
    if (line.find(key) != std::string_view::npos)
      return "a JSON document that other text stands around: give the document alone, without fences and "
             "quotation marks";
  if (line.find("'train_runtime': ") != std::string_view::npos)
    return "a Hugging Face summary, and no line of its run's steps is there to hold it against: give the "
           "console from its first loss on, or trainer_state.json";
  return {};
}

}  // namespace assay::spec::audit
