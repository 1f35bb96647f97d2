#include "spec/config/stated.hpp"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "spec/config/keys.hpp"
#include "spec/error.hpp"
#include "spec/facts.hpp"
#include "spec/text/quote.hpp"

namespace assay::spec {
namespace {

bool is_built_in(const std::string& model) {
  const std::string path = "spec/models/" + model + ".toml";
  return std::ranges::any_of(fact_files(), [&](const FactFile& file) { return file.path == path; });
}

}  // namespace

void require_stated(Loaded& loaded) {
  const RunConfig& config = loaded.config;
  const bool weights = !config.weights.empty(), built_in = is_built_in(config.model);
  if (!weights && config.model == demo_model) return;
  std::error_code unknown;
  // A name that is no file either is refused where it is looked for, with the nearest.
  if (!weights && !built_in && !std::filesystem::exists(config.model, unknown)) return;
  const bool own = weights || !built_in;
  std::vector<std::string> lines = {
      std::string(weights ? "model.weights" : "model.name") + " = " +
      quote(weights ? config.weights : config.model) + " is " +
      (own ? "a model of your own" : "not the demo's model, which the defaults suit") +
      ", and a run of it has to say:"};
  const auto& names = config.stated.names;
  const auto add = [&](const Key& key, const Usual& usual) {
    if (names.contains(key.name) || names.contains(key.alternative)) return;
    loaded.wrong.insert(key.name);
    const std::string setting = key.name + "=" + usual.value;
    const std::size_t width = std::max<std::size_t>(30, setting.size() + 2);
    lines.push_back("  " + setting + std::string(width - setting.size(), ' ') + usual.advice);
  };
  for (const bool of_own_alone : {true, false})  // its data first
    for (const Key& key : keys())
      if (key.to_state && of_own_alone != key.to_state(config, false).has_value())
        if (const auto usual = key.to_state(config, own)) add(key, *usual);
  if (lines.size() == 1) return;
  throw UserError(ExitCode::usage, lines);
}

}  // namespace assay::spec
