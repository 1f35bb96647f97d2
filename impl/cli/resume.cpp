#include "impl/cli/launch_ranks.hpp"
#include "impl/cli/program.hpp"
#include "impl/cli/verb.hpp"
#include "impl/machine/launcher_word.hpp"
#include "impl/run/start/resume_request.hpp"
#include "spec/error.hpp"

namespace assay::impl::cli {

int resume(const Arguments& arguments, Streams) {
  if (arguments.positional.size() != 1)
    throw UserError(ExitCode::usage,
                    "`assay resume` takes one run's folder, as in assay resume runs/tiny-llama; a setting "
                    "that is to be another one is given by --change key=value");
  const std::string& folder = arguments.positional[0];
  const run::ResumeWords asked{
      .run = folder, .changes = arguments.values("change"), .into = arguments.value("into", "")};
  run::resume_request(asked);  // what can be judged without tensors is, before any rank starts
  const auto before = run::ranks_before(folder);
  // Below a launcher that starts the ranks this is one of them.
  const bool started = rank_in_launch() >= 0 && !arguments.has("ranks");
  if (before && before->hosts > 1 && !arguments.has("ranks") && !started)
    throw UserError(
        ExitCode::usage,
        folder + " ran on " + std::to_string(before->hosts) +
            " hosts: give --ranks N for this machine alone, with --of " + std::to_string(before->ranks) +
            " and --rendezvous HOST:PORT on each host, or start it by a launcher (srun, torchrun)");
  const RankJob ranks = rank_job(arguments, before && !started ? before->ranks : 1);
  std::vector<std::string> words = {find_trainer(), "--resume=" + folder};
  for (const std::string& change : asked.changes) words.push_back("--change=" + change);
  if (!asked.into.empty()) words.push_back("--into=" + asked.into);
  hold_stop_signals();
  if (!ranks.several()) become(words, thread_environment());
  return launch_ranks(ranks, words);
}

}  // namespace assay::impl::cli
