#include <unistd.h>

#include <algorithm>
#include <thread>

#include "impl/cli/program.hpp"
#include "impl/cli/verb.hpp"
#include "spec/batch/batch.hpp"
#include "spec/config/check.hpp"
#include "spec/config/dump.hpp"
#include "spec/config/load.hpp"
#include "spec/error.hpp"
#include "spec/layout/data_layout.hpp"
#include "spec/model/model_spec.hpp"
#include "spec/text/quote.hpp"

namespace assay::impl::cli {
namespace {

/// What mpirun needs to start ranks on this machine; everything can be overridden from outside.
std::vector<std::pair<std::string, std::string>> mpi_environment(std::int64_t ranks) {
  std::vector<std::pair<std::string, std::string>> out = {
      // Open MPI would bind each of two ranks to one core, whatever compute.threads says.
      {"OMPI_MCA_hwloc_base_binding_policy", "none"},
      {"PRTE_MCA_hwloc_default_binding_policy", "none"},
      // The ranks print their own errors; mpirun's banner about exit codes would bury them.
      {"OMPI_MCA_orte_execute_quiet", "1"},
      // A rank that has lost another one has to say so: a second between SIGTERM and SIGKILL is short on a
      // busy
      // host. mpirun passes no output on meanwhile.
      {"OMPI_MCA_odls_base_sigkill_timeout", "2"},
      // Containers forbid the system call behind single-copy transfers, and each one would warn.
      {"OMPI_MCA_btl_vader_single_copy_mechanism", "none"},
  };
  // mpirun gives rank 0 a terminal of its own, even where the output ends in a file or a pipe.
  if (!isatty(STDOUT_FILENO)) out.emplace_back("NO_COLOR", "1");
  if (geteuid() == 0) {
    out.insert(out.end(), {{"OMPI_ALLOW_RUN_AS_ROOT", "1"}, {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"}});
    out.insert(out.end(), {{"PRTE_ALLOW_RUN_AS_ROOT", "1"}, {"PRTE_ALLOW_RUN_AS_ROOT_CONFIRM", "1"}});
  }
  if (ranks > static_cast<std::int64_t>(std::thread::hardware_concurrency()))
    out.insert(out.end(), {{"OMPI_MCA_rmaps_base_oversubscribe", "1"},
                           {"PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe"}});
  return out;
}

}  // namespace

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
  const std::int64_t ranks = arguments.positive("ranks", 1);
  // Everything that can be judged without tensors is judged here: once, at once, and before any rank starts.
  const spec::RunConfig config = spec::load(recipe, overrides);
  spec::check(config, spec::find_model(config.model));
  spec::batch_of(config.sequences, config.micro, ranks);
  spec::layout_of(config.data_parallel, ranks, config.shard_ranks, /*ranks_per_host=*/ranks);
  if (arguments.has("dump-config")) {
    streams.out << spec::dump_toml(config);
    return 0;
  }
  const std::string trainer = find_trainer();
  std::vector<std::string> words = overrides;
  if (!recipe.empty()) words.insert(words.begin(), recipe);
  if (ranks == 1) {
    words.insert(words.begin(), trainer);
    become(words, {});
  }
  const std::string launcher = in_search_path("mpirun");
  if (launcher.empty())
    throw UserError(ExitCode::usage,
                    "--ranks " + std::to_string(ranks) +
                        " needs mpirun, which is not in PATH: install Open MPI "
                        "(Debian and Ubuntu: apt install openmpi-bin) or train with one rank");
  std::vector<std::string> command = {launcher, "-n", std::to_string(ranks), trainer};
  command.insert(command.end(), words.begin(), words.end());
  const int code = supervise(command, mpi_environment(ranks));
  // mpirun ends as its first rank did. One that a signal ended is a lost rank, unless people asked for it.
  const bool by_a_signal = code > 128 && stops_passed_on() == 0;
  return by_a_signal ? static_cast<int>(ExitCode::peer_lost) : code;
}

}  // namespace assay::impl::cli
