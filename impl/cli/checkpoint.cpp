#include <algorithm>

#include "impl/checkpoint/export.hpp"
#include "impl/checkpoint/inspect.hpp"
#include "impl/checkpoint/reshard.hpp"
#include "impl/cli/verb.hpp"
#include "spec/error.hpp"
#include "spec/text/nearest.hpp"
#include "spec/text/quantity.hpp"
#include "spec/text/quote.hpp"

namespace assay::impl::cli {
namespace {

const std::vector<std::string> checkpoint_actions = {"show", "verify", "export", "reshard"};

/// As safetensors names it.
std::string safetensors_type(const std::string& word) {
  const std::vector<std::pair<std::string, std::string>> types = {
      {"bf16", "BF16"}, {"fp32", "F32"}, {"fp16", "F16"}, {"fp64", "F64"}};
  std::vector<std::string> names;
  for (const auto& [name, type] : types) {
    if (name == word) return type;
    names.push_back(name);
  }
  const auto guess = spec::nearest(word, names);
  throw UserError(ExitCode::usage, "--dtype " + spec::quote(word) +
                                       ": weights are exported as bf16, fp32, "
                                       "fp16 or fp64" +
                                       (guess ? "; did you mean \"" + *guess + "\"?" : ""));
}

void print_lines(const std::vector<impl::checkpoint::ShownLine>& lines, std::ostream& out) {
  std::size_t width = 0;
  for (const auto& line : lines) width = std::max(width, line.name.size());
  for (const auto& line : lines)
    out << line.name << std::string(width + 2 - line.name.size(), ' ') << spec::printable(line.text) << "\n";
}

int export_checkpoint(const Arguments& arguments, Streams streams) {
  if (arguments.positional.size() != 3)
    throw UserError(ExitCode::usage,
                    "`assay checkpoint export` takes a CHECKPOINT and the FOLDER to make, as in `assay "
                    "checkpoint export runs/tiny-llama tiny-llama-hf`");
  constexpr std::int64_t usual_bytes = 5'000'000'000;
  const auto done =
      impl::checkpoint::export_weights({.checkpoint = arguments.positional[1],
                                        .folder = arguments.positional[2],
                                        .dtype = safetensors_type(arguments.value("dtype", "bf16")),
                                        .most_bytes = arguments.positive("shard-bytes", usual_bytes)});
  print_lines(
      {{"exported", done.from + ", step " + spec::grouped(done.step)},
       {"to", arguments.positional[2] + ", for transformers a " + spec::quote(done.model_type)},
       {"weights", spec::grouped(done.parameters) + " parameters, " + spec::bytes(done.bytes) + " in " +
                       std::to_string(done.files.size()) + (done.files.size() == 1 ? " file" : " files")},
       {"tokenizer", done.tokenizer.empty()
                         ? "none: neither model.weights nor the folder of data.paths holds one"
                         : std::to_string(done.tokenizer.size()) + " files of " + done.tokenizer_from}},
      streams.out);
  return 0;
}

int reshard_checkpoint(const Arguments& arguments, Streams streams) {
  if (arguments.positional.size() != 3)
    throw UserError(ExitCode::usage,
                    "`assay checkpoint reshard` takes a CHECKPOINT and the FOLDER to make, as in `assay "
                    "checkpoint reshard runs/tiny-llama one-file --files 1`");
  const std::int64_t files = arguments.positive("files", 1);
  const auto done = impl::checkpoint::reshard(
      {.checkpoint = arguments.positional[1], .folder = arguments.positional[2], .files = files});
  print_lines({{"resharded", done.from + ", step " + spec::grouped(done.step)},
               {"to", arguments.positional[2] + ", " + spec::bytes(done.bytes) + " in " +
                          spec::grouped(files) + (files == 1 ? " file" : " files")}},
              streams.out);
  return 0;
}

/// Refuses options that belong to another action.
void refuse_foreign_options(const Arguments& arguments, const std::string& action) {
  const std::pair<const char*, const char*> owners[] = {
      {"dtype", "export"}, {"shard-bytes", "export"}, {"files", "reshard"}};
  for (const auto& [option, owner] : owners)
    if (arguments.has(option) && action != owner)
      throw UserError(ExitCode::usage,
                      "--" + std::string(option) + " is an option of `assay checkpoint " + owner + "` alone");
}

}  // namespace

int checkpoint(const Arguments& arguments, Streams streams) {
  const std::string action = arguments.positional.empty() ? "" : arguments.positional[0];
  if (std::find(checkpoint_actions.begin(), checkpoint_actions.end(), action) == checkpoint_actions.end()) {
    const auto guess = spec::nearest(action, checkpoint_actions);
    throw UserError(ExitCode::usage, "`assay checkpoint` does show, verify, export or reshard" +
                                         (action.empty() ? std::string("; name one")
                                                         : ", not " + spec::quote(action) +
                                                               (guess ? "; did you mean \"" + *guess + "\"?"
                                                                      : std::string())));
  }
  refuse_foreign_options(arguments, action);
  if (action == "export") return export_checkpoint(arguments, streams);
  if (action == "reshard") return reshard_checkpoint(arguments, streams);
  if (arguments.positional.size() != 2)
    throw UserError(ExitCode::usage, "`assay checkpoint " + action +
                                         "` takes one folder: of a checkpoint, of a run, or of Hugging Face "
                                         "weights");
  const std::string& path = arguments.positional[1];
  print_lines(
      action == "show" ? impl::checkpoint::show_checkpoint(path) : impl::checkpoint::verify_checkpoint(path),
      streams.out);
  return 0;
}

}  // namespace assay::impl::cli
