#include "impl/run/saving.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "impl/checkpoint/folder.hpp"
#include "impl/comm/refusal.hpp"
#include "impl/run/start/host_ranks.hpp"
#include "spec/config/dump.hpp"
#include "spec/error.hpp"
#include "spec/text/quantity.hpp"
#include "spec/text/quote.hpp"

namespace assay::impl::run {

using spec::record::Warning;

namespace {
/// Whether it is so on any rank. Collective.
bool on_any(Communicator& all, bool here) {
  const at::Tensor flag = at::full({1}, here ? 1 : 0, at::kLong);
  all.all_reduce_max(flag);
  return flag.item<std::int64_t>() != 0;
}

/// What failed in `work`, which all ranks do together, when something did that may succeed later.
std::optional<std::string> error_in(const std::function<void()>& work) {
  try {
    work();
    return {};
  } catch (const UserError& error) {
    if (error.code() != ExitCode::io) throw;
    return error.what();
  }
}
}  // namespace

Saving::Saving(const spec::RunConfig& config, LayoutGroups& groups, Say say,
               std::chrono::milliseconds patience)
    : config_(config), groups_(groups), say_(std::move(say)), patience_(patience) {}

Saving::Saving(const spec::RunConfig& config, Communicator& communicator, Say say,
               std::chrono::milliseconds patience)
    : config_(config),
      own_groups_(std::make_unique<LayoutGroups>(
          communicator, spec::layout_of(spec::DataParallel::replicate, communicator.size()))),
      groups_(*own_groups_),
      say_(std::move(say)),
      patience_(patience) {}

void Saving::take_memory(const ParameterBuffers& buffers, std::int64_t free) {
  if (!config_.checkpoint_asynchronous || !config_.saves_on_the_way()) return;
  const checkpoint::Snapshot snapshot(buffers, writer_of(groups_));
  const std::int64_t ranks = host_ranks(groups_.all()).here;
  // Ranks of a host have about the same to write. What is left is for files that are read and written.
  asynchronous_ = !on_any(groups_.all(), free < ranks * snapshot.bytes() / 4 * 5);
  if (asynchronous_) return memory_.reserve(snapshot.bytes(), buffers.weights.device());
  if (groups_.all().rank() == 0)
    say_(Warning{.step = {},
                 .code = "checkpoint_memory",
                 .text = "steps will wait for each save (checkpoint.asynchronous = on): a host has less free "
                         "memory than the copy of the state that would be written beside them, here " +
                         spec::bytes(ranks * snapshot.bytes()) + ", and " + spec::bytes(free) + " are free"});
}

void Saving::report(const checkpoint::Saved& saved, const spec::record::Checkpoint& event) {
  failed_in_a_row_ = 0;
  saved_ = event.step;
  if (groups_.all().rank() != 0) return;
  say_(event);
  for (const std::string& gone : saved.made_room)
    say_(Warning{.step = event.step,
                 .code = "made_room",
                 .text = "the disk was full: " + gone + " was removed to save " + saved.path +
                         ", so fewer than checkpoint.keep are kept; free space on the disk"});
  if (saved.not_removed)
    say_(Warning{.step = event.step,
                 .code = "not_removed",
                 .text = saved.path + " is saved, but an older checkpoint could not be removed: " +
                         *saved.not_removed + "; the next save tries again"});
}

void Saving::report_failure(std::int64_t step, const std::string& text) {
  failed_in_a_row_ = std::min<std::int64_t>(failed_in_a_row_ + 1, 20);
  steps_until_made_up_ = std::int64_t{1} << (failed_in_a_row_ - 1);
  if (groups_.all().rank() == 0)
    say_(Warning{
        .step = step, .code = "not_saved", .text = text + "; the run goes on and the next save tries again"});
}

std::optional<std::string> Saving::failure(const ParameterBuffers& buffers, const checkpoint::State& state) {
  return error_in([&] {
    begins_();
    const auto begin = std::chrono::steady_clock::now();
    const checkpoint::Saved saved =
        checkpoint::save(config_.directory, buffers, state, retention(), groups_, piece_);
    const std::chrono::duration<double> delay = std::chrono::steady_clock::now() - begin;
    report(saved, {.step = state.step,
                   .path = saved.path,
                   .bytes = saved.bytes,
                   .seconds = saved.seconds,
                   .asynchronous = false,
                   .copy_seconds = 0,
                   .write_seconds = saved.seconds,
                   .delay_seconds = delay.count(),
                   .host_bytes = 0});
  });
}

std::optional<std::string> Saving::failure_to_begin(const ParameterBuffers& buffers,
                                                    const checkpoint::State& state) {
  bool there = false;
  auto failed = error_in([&] {
    begins_();
    auto save = std::make_unique<checkpoint::Save>(config_.directory, buffers, state, retention(), groups_);
    there = save->there();
    if (!there) beside_ = std::make_unique<SaveUnderWay>(std::move(save), buffers, memory_, groups_.all());
  });
  return there ? failure(buffers, state) : failed;
}

void Saving::on_the_way(const ParameterBuffers& buffers, const checkpoint::State& state) {
  const auto begin = std::chrono::steady_clock::now();
  if (beside_) wait_for_it();
  steps_until_made_up_ = 0;  // by this one
  const auto failed = asynchronous_ ? failure_to_begin(buffers, state) : failure(buffers, state);
  if (failed) report_failure(state.step, *failed);
  if (beside_)
    beside_->delayed(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
}

void Saving::settle() {
  const auto begin = std::chrono::steady_clock::now();
  const std::int64_t step = beside_->step();
  bool ended = false;
  const auto failed = error_in([&] {
    try {
      ended = beside_->go_on();
    } catch (...) {
      beside_.reset();  // on all ranks: none writes any more
      throw;
    }
  });
  if (failed) return report_failure(step, *failed);
  beside_->delayed(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  if (!ended) return;
  const auto done = std::move(beside_);
  report(done->saved(), done->event());
}

void Saving::wait_for_it() {
  while (beside_) {
    beside_->await(piece_);
    settle();
  }
}

bool Saving::between_steps() {
  if (beside_) settle();
  if (steps_until_made_up_ == 0) return false;
  return --steps_until_made_up_ == 0;
}

void Saving::at_last(const ParameterBuffers& buffers, const checkpoint::State& state,
                     const StopSignal& stop) {
  Communicator& all = groups_.all();
  const auto until = std::chrono::steady_clock::now() + patience_;
  const int before = stop.received();
  gave_up_ = true;  // until it is saved
  if (beside_) wait_for_it();
  bool told = false;
  while (const auto failed = failure(buffers, state)) {
    piece_();
    if (on_any(all, std::chrono::steady_clock::now() >= until || stop.received() != before))
      refuse_together(all, [&] { throw UserError(ExitCode::io, *failed + "; " + way_out(state)); });
    if (!std::exchange(told, true) && all.rank() == 0)
      say_(Warning{.step = state.step,
                   .code = "not_saved",
                   .text = *failed + "; tried again for " +
                           spec::duration(std::chrono::duration<double>(patience_).count()) +
                           "; press Ctrl-C to give up"});
    std::this_thread::sleep_for(
        std::min<std::chrono::milliseconds>(patience_, std::chrono::milliseconds(500)));
  }
  gave_up_ = false;
}

std::string Saving::way_out(const checkpoint::State& state) const {
  const auto kept =
      checkpoint::committed_checkpoints(std::filesystem::path(config_.directory) / "checkpoints");
  const std::string step = std::to_string(state.step);
  if (kept.empty())
    return "step " + step +
           " is not saved and no earlier checkpoint is there: train anew once that is mended";
  if (kept.back().step == state.step)
    return "step " + step + " itself is saved in " + kept.back().path.string();
  return "step " + step + " is not saved, " + kept.back().path.string() +
         " is intact: once that is mended, `assay resume " + spec::shell_word(config_.directory) + "`";
}

}  // namespace assay::impl::run
