#include "impl/cli/launch_ranks.hpp"
#include "impl/cli/program.hpp"
#include "impl/cli/verb.hpp"
#include "impl/machine/launcher_word.hpp"
#include "spec/config/check.hpp"
#include "spec/config/division.hpp"
#include "spec/config/dump.hpp"
#include "spec/config/load.hpp"
#include "spec/config/own_model_data.hpp"
#include "spec/error.hpp"
#include "spec/model/model_spec.hpp"
#include "spec/text/quote.hpp"

namespace assay::impl::cli {
std::string find_trainer() {
  std::string trainer = beside_this_program("assay-train");
  if (trainer.empty())
    throw UserError(ExitCode::usage,
                    "assay-train is not beside this program: training needs libtorch; build it with "
                    "`cmake --preset release && cmake --build --preset release`");
  std::string missing;
  for (const std::string& name : missing_libraries(trainer)) missing += (missing.empty() ? "" : ", ") + name;
  if (!missing.empty())
    throw UserError(ExitCode::usage,
                    trainer +
                        " does not start: these libraries are not found, or may not be read: " + missing +
                        "; libtorch's are in the cache folder of the user who ran ci/setup: run ci/setup and "
                        "build as this user, or set LD_LIBRARY_PATH to the folders that hold them");
  return trainer;
}

std::pair<std::string, std::vector<std::string>> recipe_and_settings(const std::vector<std::string>& words) {
  std::string recipe;
  std::vector<std::string> settings;
  for (const std::string& word : words) {
    if (word.empty())
      throw UserError(
          ExitCode::usage,
          "an empty argument: give a recipe's path or key=value (is a variable of the shell unset?)");
    if (word.find('=') != std::string::npos) {
      settings.push_back(word);
    } else if (recipe.empty()) {
      recipe = word;
    } else {
      throw UserError(ExitCode::usage, "two recipes, " + spec::quote(recipe) + " and " + spec::quote(word) +
                                           ": give one, and settings as key=value");
    }
  }
  return {recipe, settings};
}

int train(const Arguments& arguments, Streams streams) {
  const auto [recipe, overrides] = recipe_and_settings(arguments.positional);
  const RankJob ranks = rank_job(arguments);
  // Everything that can be judged without tensors is judged here: once, at once, and before any rank starts.
  const spec::RunConfig config = spec::load(recipe, overrides);
  spec::require_data_of_own_model(config, recipe, overrides);
  // A run that goes on has the model of its checkpoint, with which the trainer compares the one that is
  // named.
  if (config.resume == spec::Resume::never) {
    const spec::ModelSpec model = spec::find_model(config.model, config.sequence_length);
    spec::check(config, model);
    // A rank that a launcher started among others is judged where it knows them.
    if (rank_in_launch() < 0)
      spec::divide(config, model,
                   {.all = ranks.all, .per_host = ranks.all % ranks.here == 0 ? ranks.here : 0});
  }
  if (arguments.has("dump-config")) {
    streams.out << spec::dump_toml(config);
    return 0;
  }
  const std::string trainer = find_trainer();
  std::vector<std::string> words = overrides;
  if (!recipe.empty()) words.insert(words.begin(), recipe);
  words.insert(words.begin(), trainer);
  hold_stop_signals();
  if (!ranks.several()) become(words, thread_environment());
  return launch_ranks(ranks, words);
}

}  // namespace assay::impl::cli
