#include "tests/fuzz/targets.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <sstream>
#include <string>

#include "impl/checkpoint/folder.hpp"
#include "impl/checkpoint/stored_state.hpp"
#include "impl/cli/verb.hpp"
#include "impl/data/token_format.hpp"
#include "impl/generate/tokenizer_file.hpp"
#include "spec/audit/readers/read_log.hpp"
#include "spec/checkpoint/content_hash.hpp"
#include "spec/checkpoint/safetensors.hpp"
#include "spec/checkpoint/weight_files.hpp"
#include "spec/config/load.hpp"
#include "spec/error.hpp"
#include "spec/hardware/hardware.hpp"
#include "spec/model/model_spec.hpp"
#include "spec/record/read.hpp"
#include "spec/record/write.hpp"
#include "spec/text/faults.hpp"
#include "spec/text/file.hpp"
#include "spec/text/json.hpp"
#include "spec/text/toml.hpp"

namespace assay::fuzz {
namespace {

std::string_view text_of(Bytes bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

/// Not assert(): it must hold in a release build too.
void promise(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "broken promise: %s\n", what);
  std::abort();
}

/// Runs `read`; refusing is as good as reading, as long as it is one of our errors in one line.
template <class Read>
void guarded(Read&& read) {
  try {
    read();
  } catch (const spec::ManyFaults& several) {
    for (const std::string& each : several.messages()) {
      promise(each.find('\n') == std::string::npos, "each mistake is one line");
      promise(!each.empty() && each.size() < 4000, "each mistake is short");
    }
    promise(std::ranges::count(std::string_view(several.what()), '\n') <= 21,
            "mistakes are few enough to read");
  } catch (const UserError& error) {
    const std::string_view what = error.what();
    promise(what.find('\n') == std::string_view::npos, "an error is one line");
    promise(!what.empty() && what.size() < 4000, "an error is short");
    promise(error.code() != ExitCode::bug, "bad input is no bug");
  } catch (const SpecError& error) {
    promise(std::string_view(error.what()).find('\n') == std::string_view::npos, "an error is one line");
  }
}

void check_record(const spec::audit::RunRecord& run) {
  using namespace spec::audit;
  promise(run.steps.size() <= RunRecord::kept_steps + 1000, "steps are thinned");
  promise(run.steps_seen >= static_cast<std::int64_t>(run.steps.size()), "steps are counted");
  promise(run.unread_quotes.size() <= 10, "ten quotes");
  const auto ordered = [](const std::optional<Printed>& p) {
    return !p || p->value != p->value || (p->low <= p->value && p->value <= p->high);
  };
  for (const Step& step : run.steps)
    promise(std::all_of(step.fields.begin(), step.fields.end(), ordered), "an interval holds its value");
  promise(std::all_of(run.settings.begin(), run.settings.end(), ordered), "an interval holds its value");
  for (const UnreadLine& quote : run.unread_quotes)
    promise(quote.text.size() <= 200 && quote.text.find('\n') == std::string::npos, "quotes are short");
}

void read_all(const std::string& log, const spec::audit::ReadOptions& options) {
  guarded([&] {
    std::istringstream in(log);
    for (const auto& run : spec::audit::read_logs(in, "fuzz", options)) check_record(run);
  });
}

/// Lines that make a log known at once, so that every reader is reached whatever follows.
constexpr std::string_view leads[] = {
    "",
    "{\"event\":\"step\",\"step\":1,\"loss\":2.5,\"seconds\":1}\n",
    "Iter 0: loss 10.8422, time 32054ms (warming up...)\n",
    "[titan] - INFO - step:  1  loss:  8.1  grad_norm:  1.0  memory: 1.00GiB(1.00%)  tps: 1  tflops: 1.0  "
    "mfu: 1.00%\n",
    "[rank 0] INFO     [step 1] loss=11.7 | lr=6.00e-05 | grad_norm=0.018 | tok/s=1,550 | mfu=1.9% | "
    "step_time=1.0s\n",
    " iteration 1/ 9 | consumed samples: 1 | elapsed time per iteration (ms): 5.9 | lm loss: 1.8E+00 |\n",
    "iter 0: loss 4.2648, time 9371.81ms, mfu -100.00%\n",
    "step    1/9 | loss 11.1 (+nanz)| norm 52.9 (+nanz)| lr 8.57e-07 | 3056.36 ms | 42.6% bf16 MFU | 343080 "
    "tok/s\n",
    "[T] step     0 [ 19.9%] | time:  1869 ms | norm   4.3 | loss   3.2 | tps 35064 | sol 42.9%\n",
    "{'loss': 0.5, 'learning_rate': 5e-05, 'epoch': 14.97}\n",
    "{\n \"training_iterations\": [ {\"iter\": 0, \"loss\": 1.0, \"time_ms\": 2.0}, {",
    "{\n \"log_history\": [ {\"step\": 1, \"loss\": 1.0}, {",
    "[\n {\"log\": \"step\", \"step\": 0, \"loss\": 1.0}, {",
};

/// The first byte chooses the lead.
void log(Bytes bytes) {
  if (bytes.empty()) return;
  read_all(std::string(leads[bytes[0] % std::size(leads)]) + std::string(text_of(bytes.subspan(1))), {});
}

void table(Bytes bytes) {
  spec::audit::ReadOptions options;
  options.map = "step=iter,loss=train_loss,seconds=ms:ms,mfu=mfu:%,tokens_per_second=train.tps:k";
  read_all(std::string(text_of(bytes)), options);
}

/// One line: --map; the next: --set.
void mapping(Bytes bytes) {
  const std::string_view text = text_of(bytes);
  spec::audit::ReadOptions options;
  options.map = text.substr(0, text.find('\n'));
  if (text.find('\n') != std::string_view::npos) options.set = text.substr(text.find('\n') + 1);
  std::replace(options.set.begin(), options.set.end(), '\n', ' ');
  read_all("iter,train_loss\n1,2.5\n", options);
}

void printed(Bytes bytes) {
  using namespace spec::audit;
  for (const Kind kind : {Kind::counted, Kind::measured}) {
    const auto number = parse_printed(text_of(bytes), kind, 1e-3, 7);
    if (number && number->value == number->value)
      promise(number->low <= number->value && number->value <= number->high, "an interval holds its value");
  }
}

void model_toml(Bytes bytes) {
  guarded([&] {
    const auto model = spec::model_from_toml(text_of(bytes), "fuzz");
    promise(spec::model_from_toml(spec::to_toml(model), "again") == model, "a model survives to_toml");
  });
}

void hugging_face(Bytes bytes) {
  guarded([&] { spec::check(spec::model_from_hugging_face(text_of(bytes), "fuzz")); });
}

void hardware(Bytes bytes) {
  guarded([&] { spec::gpu_from_toml(text_of(bytes), "fuzz"); });
}

void config(Bytes bytes) {
  guarded([&] { spec::load_text(text_of(bytes), "fuzz", {}); });
}

/// One override a line.
void overrides(Bytes bytes) {
  std::vector<std::string> given;
  std::istringstream in{std::string(text_of(bytes))};
  for (std::string line; std::getline(in, line) && given.size() < 20;) given.push_back(line);
  guarded([&] { spec::load_text("", "fuzz", given); });
}

void safetensors(Bytes bytes) {
  guarded([&] {
    const auto prefix = std::as_bytes(bytes);
    const std::uint64_t needed = spec::safetensors::header_bytes(prefix, "fuzz");
    if (needed > bytes.size()) return;
    // The file is as long as its last tensor says, so that headers are accepted at all.
    for (const std::uint64_t data : {std::uint64_t{0}, std::uint64_t{64}, std::uint64_t{4096}})
      guarded([&] {
        const auto header = spec::safetensors::parse(prefix, needed + data, "fuzz");
        for (const auto& tensor : header.tensors) promise(tensor.end <= data, "tensors lie within the file");
      });
  });
}

void record(Bytes bytes) {
  guarded([&] {
    std::istringstream in{std::string(text_of(bytes))};
    for (const spec::record::Event& event : spec::record::read_events(in, "fuzz"))
      promise(spec::record::to_json(spec::record::from_json(spec::record::to_json(event), "again")) ==
                  spec::record::to_json(event),
              "an event survives to_json");
  });
}

void tokenizer(Bytes bytes) {
  guarded([&] {
    const auto codec = impl::generate::tokenizer_of(std::string(text_of(bytes)), "fuzz");
    for (const char* prompt : {"", "One day 12,345", "a\nb\xc3\xa9<|end|></s>"})
      guarded([&] {
        for (const std::int64_t id : codec->encode(prompt)) {
          promise(id >= 0, "an id counts from 0");
          codec->decode({id});
        }
      });
  });
}

/// The first byte chooses the tokenizer.
void prompt(Bytes bytes) {
  static const auto codecs = [] {
    std::vector<std::unique_ptr<impl::generate::TextCodec>> all;
    for (const char* name : {"gpt2", "llama2", "llama3", "mistral", "qwen2"})
      all.push_back(impl::generate::read_tokenizer(std::string(ASSAY_SOURCE_DIR) + "/golden/tokenizers/" +
                                                   name + "/tokenizer.json"));
    return all;
  }();
  if (bytes.empty()) return;
  const std::string text(text_of(bytes.subspan(1)));
  guarded([&] {
    const auto& codec = *codecs[bytes[0] % codecs.size()];
    for (const std::int64_t id : codec.encode(text))
      promise(codec.decode({id}).size() < 1000, "a token is short");
  });
  guarded([&] {
    impl::cli::generate_plan({.options = {{bytes[0] < 128 ? "ids" : "prompt", {text}}}, .positional = {"/"}});
  });
}

void weight_index(Bytes bytes) {
  const std::string text(text_of(bytes));
  guarded([&] {
    std::vector<spec::WeightFile> files;
    for (const std::string& name : spec::files_of_index(text, "fuzz")) {
      promise(spec::is_file_name(name), "a file of an index is in its folder");
      files.push_back({.name = name, .header = {}});
    }
    spec::check_index(text, files, "fuzz");
  });
}

/// Files of their own, which every run writes anew.
const std::filesystem::path& scratch() {
  static const struct Folder {
    std::filesystem::path path;
    Folder() {
      std::string name = (std::filesystem::temp_directory_path() / "assay-fuzz-XXXXXX").string();
      promise(mkdtemp(name.data()), "there is room for a folder");
      path = name;
    }
    ~Folder() { std::filesystem::remove_all(path); }
  } folder;
  return folder.path;
}

void write(const char* name, std::string_view text) {
  std::ofstream(scratch() / name, std::ios::binary) << text;
}

void manifest(Bytes bytes) {
  using namespace impl::checkpoint;
  const std::string text(text_of(bytes));
  guarded([&] {
    const Manifest read = manifest_from_json(text, "fuzz");
    if (read.schema == 2)
      promise(to_json(manifest_from_json(to_json(read), "again")) == to_json(read),
              "a manifest survives to_json");
    for (const FileEntry& file : read.files)
      promise(spec::is_file_name(file.name), "a file of a checkpoint is in its folder");
    write(manifest_name, text);
    write(marker_name, spec::content_hash(std::as_bytes(std::span(text))) + "\n");
    const StoredState stored(scratch(), "");
    promise(stored.bytes() >= 0, "bytes are counted");
  });
}

/// Three lengths of two bytes each, then as much for the file of tokens, its .idx and its .ends; the rest is
/// its .json. What is empty is not there.
void token_file(Bytes bytes) {
  std::size_t at = 6;
  const auto piece = [&](std::size_t number) {
    if (bytes.size() < 6) return std::string_view();
    const std::size_t length = bytes[2 * number] + 256u * bytes[2 * number + 1];
    const std::string_view text = text_of(bytes).substr(std::min(at, bytes.size()), length);
    at += length;
    return text;
  };
  constexpr const char* endings[] = {".bin", ".idx", ".ends", ".json"};
  for (std::size_t i = 0; i < std::size(endings); ++i) {
    const std::filesystem::path path = scratch() / ("tokens" + std::string(endings[i]));
    const std::string_view text = i < 3 ? piece(i) : text_of(bytes).substr(std::min(at, bytes.size()));
    std::filesystem::remove(path);
    if (!text.empty()) std::ofstream(path, std::ios::binary) << text;
  }
  for (const auto stated :
       {std::optional<impl::data::TokenType>(), std::optional(impl::data::TokenType::uint16)})
    guarded([&] {
      const impl::data::OpenedFile file(scratch() / "tokens.bin");
      const auto format = impl::data::recognise(file, stated);
      promise(format.tokens > 0 && format.first_byte >= 0 &&
                  format.first_byte + format.tokens * impl::data::width(format.type) <= file.bytes(),
              "tokens lie within the file");
      for (const std::int64_t end : impl::data::document_ends(file, format))
        promise(end >= 0 && end <= format.tokens, "documents end within the tokens");
    });
}

void json(Bytes bytes) {
  guarded([&] { spec::parse_json(text_of(bytes), "fuzz"); });
}

}  // namespace

const std::vector<Target>& targets() {
  static const std::vector<Target> all = {{"log", log},
                                          {"table", table},
                                          {"mapping", mapping},
                                          {"printed", printed},
                                          {"record", record},
                                          {"model_toml", model_toml},
                                          {"hugging_face", hugging_face},
                                          {"hardware", hardware},
                                          {"config", config},
                                          {"overrides", overrides},
                                          {"safetensors", safetensors},
                                          {"json", json},
                                          {"tokenizer", tokenizer},
                                          {"prompt", prompt},
                                          {"weight_index", weight_index},
                                          {"manifest", manifest},
                                          {"token_file", token_file}};
  return all;
}

const Target* find_target(std::string_view name) {
  const auto& all = targets();
  const auto found = std::find_if(all.begin(), all.end(), [&](const Target& t) { return t.name == name; });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace assay::fuzz
