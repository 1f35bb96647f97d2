#include "impl/run/saving.hpp"

#include <thread>
#include <utility>

#include "impl/checkpoint/folder.hpp"
#include "impl/params/gathered_state.hpp"
#include "spec/config/dump.hpp"
#include "spec/error.hpp"
#include "spec/text/quantity.hpp"

namespace assay::impl::run {

using spec::record::Warning;

Saving::Saving(const spec::RunConfig& config, Communicator& communicator, Say say,
               std::chrono::milliseconds patience)
    : config_(config), communicator_(communicator), say_(std::move(say)), patience_(patience) {}

Saving::Saving(const spec::RunConfig& config, LayoutGroups& groups, Say say,
               std::chrono::milliseconds patience)
    : Saving(config, groups.all(), std::move(say), patience) {
  groups_ = &groups;
}

std::optional<std::string> Saving::failure(const ParameterBuffers& buffers, const checkpoint::State& state,
                                           const checkpoint::StateSource& source) {
  try {
    const checkpoint::Saved saved =
        checkpoint::save(config_.directory, buffers, state,
                         checkpoint::Retention(config_.checkpoint_keep, config_.keep_best), source);
    say_(spec::record::Checkpoint{
        .step = state.step, .path = saved.path, .bytes = saved.bytes, .seconds = saved.seconds});
    if (saved.not_removed)
      say_(Warning{.step = state.step,
                   .code = "not_removed",
                   .text = saved.path + " is saved, but an older checkpoint could not be removed: " +
                           *saved.not_removed + "; the next save tries again"});
    return {};
  } catch (const UserError& error) {
    if (error.code() != ExitCode::io) throw;
    return error.what();
  }
}

void Saving::collectively(const ParameterBuffers& buffers,
                          const std::function<void(const checkpoint::StateSource&)>& on_rank_0) {
  {
    GatheredState gathered(buffers, groups_);
    if (communicator_.rank() == 0)
      on_rank_0([&](at::Tensor ParameterBuffers::*buffer, std::size_t index) {
        piece_();
        return gathered.values(buffer, index);
      });
    else
      gathered.serve();
  }
  communicator_.barrier();
}

void Saving::on_the_way(const ParameterBuffers& buffers, const checkpoint::State& state) {
  collectively(buffers, [&](const checkpoint::StateSource& source) {
    if (const auto failed = failure(buffers, state, source))
      say_(Warning{.step = state.step,
                   .code = "not_saved",
                   .text = *failed + "; the run goes on and the next save tries again"});
  });
}

void Saving::at_last(const ParameterBuffers& buffers, const checkpoint::State& state,
                     const StopSignal& stop) {
  collectively(buffers, [&](const checkpoint::StateSource& source) {
    const auto until = std::chrono::steady_clock::now() + patience_;
    const int before = stop.received();
    bool told = false;
    while (const auto failed = failure(buffers, state, source)) {
      piece_();
      if (std::chrono::steady_clock::now() >= until || stop.received() != before)
        throw UserError(ExitCode::io, *failed + "; " + way_out(state));
      if (!std::exchange(told, true))
        say_(Warning{.step = state.step,
                     .code = "not_saved",
                     .text = *failed + "; tried again for " +
                             spec::duration(std::chrono::duration<double>(patience_).count()) +
                             ": free space now, or press Ctrl-C to give up"});
      std::this_thread::sleep_for(
          std::min<std::chrono::milliseconds>(patience_, std::chrono::milliseconds(500)));
    }
  });
}

std::string Saving::way_out(const checkpoint::State& state) const {
  const auto kept =
      checkpoint::committed_checkpoints(std::filesystem::path(config_.directory) / "checkpoints");
  const std::string step = std::to_string(state.step);
  if (kept.empty())
    return "step " + step + " is not saved and no earlier checkpoint is there: free space and train anew";
  if (kept.back().step == state.step)
    return "step " + step + " itself is saved in " + kept.back().path.string();
  return "step " + step + " is not saved, " + kept.back().path.string() +
         " is intact: free space, then run the same command with run.directory=" + config_.directory +
         " checkpoint.resume=auto";
}

}  // namespace assay::impl::run
