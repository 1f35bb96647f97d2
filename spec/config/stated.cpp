#include "spec/config/stated.hpp"

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "spec/error.hpp"
#include "spec/facts.hpp"
#include "spec/text/quote.hpp"

namespace assay::spec {
namespace {

bool is_built_in(const std::string& model) {
  const std::string path = "spec/models/" + model + ".toml";
  return std::ranges::any_of(fact_files(), [&](const FactFile& file) { return file.path == path; });
}

/// A setting as one types it, and what to say of its value.
struct Missing {
  std::string setting, advice;
};

std::vector<Missing> missing_of(const Loaded& loaded, bool own) {
  const auto stated = [&](const char* key) { return loaded.config.stated.names.contains(key); };
  std::vector<Missing> all;
  if (own && !stated("data.paths"))
    all.push_back({"data.paths=tokens.bin",
                   "its token files (recipes/own-text/tokenise.py makes them from text); [] for text of the "
                   "built-in grammar, one byte a token"});
  if (!stated("train.steps") && !stated("train.tokens"))
    all.push_back({"train.steps=1000", "optimizer steps, or by tokens, train.tokens=100M"});
  if (!stated("batch.sequence_length"))
    all.push_back({"batch.sequence_length=2048", "tokens of a sequence, at most the model's context"});
  if (!stated("optimizer.learning_rate")) {
    const bool weights = !loaded.config.weights.empty();
    all.push_back({std::string("optimizer.learning_rate=") + (weights ? "1e-5" : "3e-4"),
                   weights ? "usual to go on from weights that are trained"
                           : "usual from initial weights: 6e-4 for 100 million parameters, 3e-4 for a "
                             "billion, 1e-4 for tens of them"});
  }
  return all;
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
  const std::vector<Missing> missing = missing_of(loaded, own);
  if (missing.empty()) return;
  std::vector<std::string> lines = {
      std::string(weights ? "model.weights" : "model.name") + " = " +
      quote(weights ? config.weights : config.model) + " is " +
      (own ? "a model of your own" : "not the demo's model, which the defaults suit") +
      ", and a run of it has to say:"};
  for (const Missing& each : missing) {
    loaded.wrong.insert(each.setting.substr(0, each.setting.find('=')));
    const std::size_t width = std::max<std::size_t>(30, each.setting.size() + 2);
    lines.push_back("  " + each.setting + std::string(width - each.setting.size(), ' ') + each.advice);
  }
  throw UserError(ExitCode::usage, lines);
}

}  // namespace assay::spec
