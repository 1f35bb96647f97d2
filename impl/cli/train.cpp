#include "impl/cli/launch_ranks.hpp"
#include "impl/cli/program.hpp"
#include "impl/cli/verb.hpp"
#include "impl/data/data_files.hpp"
#include "impl/machine/launcher_word.hpp"
#include "spec/config/check.hpp"
#include "spec/config/division.hpp"
#include "spec/config/dump.hpp"
#include "spec/config/load.hpp"
#include "spec/config/stated.hpp"
#include "spec/error.hpp"
#include "spec/model/hugging_face.hpp"
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
  spec::Loaded loaded = spec::load_all(recipe, overrides);
  loaded.faults.gather([&] { spec::require_stated(loaded); });
  if (loaded.faults.none()) loaded.faults.gather([&] { data::name_data_files(loaded.config); });
  const spec::RunConfig& config = loaded.config;
  // A run that goes on has the model of its checkpoint, with which the trainer compares the one that is
  // named.
  spec::ModelSpec model;
  const bool found = config.resume == spec::Resume::never && loaded.faults.gather([&] {
    model = spec::find_model_to_train(config.model, config.sequence_length).model;
  });
  if (found) loaded.gather([&] { spec::check(config, model); });
  loaded.faults.refuse();
  // A rank that a launcher started among others is judged where it knows them.
  if (found && rank_in_launch() < 0)
    spec::divide(config, model, {.all = ranks.all, .per_host = ranks.all % ranks.here == 0 ? ranks.here : 0});
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
