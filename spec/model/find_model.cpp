// From MODEL as users write it to a ModelSpec.
#include <filesystem>
#include <map>
#include <system_error>

#include "spec/error.hpp"
#include "spec/facts.hpp"
#include "spec/model/hugging_face.hpp"
#include "spec/model/model_spec.hpp"
#include "spec/text/file.hpp"
#include "spec/text/nearest.hpp"
#include "spec/text/quote.hpp"

namespace assay::spec {

namespace {
namespace fs = std::filesystem;

constexpr std::string_view models_folder = "spec/models/", models_ending = ".toml";

[[noreturn]] void refuse(const std::string& what) { throw UserError(ExitCode::usage, what); }

bool is_model(const FactFile& file) { return file.path.substr(0, models_folder.size()) == models_folder; }

std::string name_in(const FactFile& file) {
  return std::string(
      file.path.substr(models_folder.size(), file.path.size() - models_folder.size() - models_ending.size()));
}

std::string read_text(const fs::path& path) try {
  return read_file(path, file_limits::model);
} catch (const FileFault& fault) {
  if (fault.kind() == FileFault::Kind::not_readable) throw UserError(ExitCode::io, fault.what());
  refuse("model " + quote(path.string()) + ": " + fault.why() +
         "; give a .toml of spec/models or a config.json");
}

/// transformers builds no block of multi-token prediction to train, whatever the file says of one.
void leave_out_multi_token_blocks(HuggingFaceModel& read) {
  if (read.model.multi_token_layers == 0) return;
  read.without_effect.push_back(
      "num_nextn_predict_layers = " + std::to_string(read.model.multi_token_layers) +
      " (the model is trained without that block of multi-token prediction, as "
      "transformers builds it)");
  read.model.multi_token_layers = 0;
}

HuggingFaceModel read_path(fs::path path, std::optional<std::int64_t> longest, bool to_train) {
  std::error_code error;
  if (fs::is_directory(path, error)) {
    path /= "config.json";
    if (!fs::exists(path, error))
      refuse("folder " + quote(path.parent_path().string()) + " holds no config.json");
  }
  const std::string kind = path.extension().string();
  if (kind == ".toml") return {model_from_toml(read_text(path), path.string()), {}};
  if (kind == ".json") {
    // The folder's name becomes the model's, also when the path was relative ("config.json", ".").
    const fs::path whole = fs::absolute(path, error).lexically_normal();
    HuggingFaceModel read =
        read_hugging_face(read_text(path), error ? path.string() : whole.string(), longest);
    if (to_train) leave_out_multi_token_blocks(read);
    return read;
  }
  refuse("model " + quote(path.string()) +
         " is neither a .toml nor a .json file nor a folder with a config.json");
}

/// The built-in names in one line, those with a common beginning together: "llama2-{13b,70b,7b}, tiny-llama".
std::string names_in_short() {
  std::map<std::string, std::vector<std::string>> endings;
  for (const std::string& name : model_names()) {
    const auto dash = name.find('-');
    const auto length = dash == std::string::npos ? name.size() : dash + 1;
    endings[name.substr(0, length)].push_back(name.substr(length));
  }
  std::string all;
  for (const auto& [beginning, list] : endings) {
    std::string inner;
    for (const std::string& ending : list) inner += (inner.empty() ? "" : ",") + ending;
    all += (all.empty() ? "" : ", ") + beginning + (list.size() == 1 ? inner : "{" + inner + "}");
  }
  return all;
}

HuggingFaceModel found(const std::string& name_or_path, std::optional<std::int64_t> longest, bool to_train) {
  for (const FactFile& file : fact_files())
    if (is_model(file) && name_in(file) == name_or_path)
      return {model_from_toml(file.text, std::string(file.path)), {}};

  std::error_code error;
  const bool plausible = !name_or_path.empty() && name_or_path.find('\0') == std::string::npos;
  if (plausible && fs::exists(name_or_path, error)) return read_path(name_or_path, longest, to_train);

  const auto match = nearest(name_or_path.substr(0, 80), model_names());
  refuse("no model and no file is called " + quote(name_or_path) +
         (match ? "; did you mean " + quote(*match) + "?" : ";") + " built-in models: " + names_in_short() +
         "; or give the path of a .toml, a config.json or its folder");
}

}  // namespace

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for (const FactFile& file : fact_files())
    if (is_model(file)) names.push_back(name_in(file));
  return names;
}

ModelSpec find_model(const std::string& name_or_path, std::optional<std::int64_t> longest) {
  return found(name_or_path, longest, false).model;
}

HuggingFaceModel find_model_to_train(const std::string& name_or_path, std::optional<std::int64_t> longest) {
  return found(name_or_path, longest, true);
}

}  // namespace assay::spec
