#include "spec/config/own_model_data.hpp"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "spec/error.hpp"
#include "spec/facts.hpp"
#include "spec/text/file.hpp"
#include "spec/text/quote.hpp"
#include "spec/text/toml.hpp"

namespace assay::spec {
namespace {

constexpr const char* key_of_data = "data.paths";

bool recipe_states_data(const std::string& recipe) {
  if (recipe.empty()) return false;
  const document::Tree tree = parse_toml(read_file(recipe, file_limits::recipe), recipe);
  if (tree.root().find(key_of_data)) return true;
  const std::optional<document::Item> data = tree.root().find("data");
  return data && data->is(document::Kind::object) && data->find("paths");
}

bool is_built_in(const std::string& model) {
  const std::string path = "spec/models/" + model + ".toml";
  return std::ranges::any_of(fact_files(), [&](const FactFile& file) { return file.path == path; });
}

}  // namespace

void require_data_of_own_model(const RunConfig& config, const std::string& recipe,
                               const std::vector<std::string>& overrides) {
  if (!config.data_paths.empty()) return;
  std::error_code unknown;
  // A name that is no file either is refused where it is looked for, with the nearest.
  if (config.weights.empty() &&
      (is_built_in(config.model) || !std::filesystem::exists(config.model, unknown)))
    return;
  const std::string stated = std::string(key_of_data) + "=";
  if (std::ranges::any_of(overrides, [&](const std::string& word) { return word.starts_with(stated); }) ||
      recipe_states_data(recipe))
    return;
  const bool weights = !config.weights.empty();
  throw UserError(
      ExitCode::usage,
      std::string(weights ? "model.weights" : "model.name") + " = " +
          quote(weights ? config.weights : config.model) +
          " is a model of your own, and data.paths does not say what to train it on: give its token "
          "files, data.paths=tokens.bin (recipes/own-text/tokenise.py makes them from text), or "
          "data.paths=[] for text of the built-in grammar, one byte a token");
}

}  // namespace assay::spec
