#pragma once
// The saves of a run: what goes on beside training, what happens when one fails. The weights are still in
// memory then, and a run that goes on, or waits, can save them later.
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "impl/checkpoint/checkpoint.hpp"
#include "impl/checkpoint/snapshot.hpp"
#include "impl/machine/host.hpp"
#include "impl/params/layouts/layout_groups.hpp"
#include "impl/run/save_under_way.hpp"
#include "impl/run/stop_signal.hpp"
#include "spec/config/run_config.hpp"
#include "spec/record/event.hpp"

namespace assay::impl::run {

/// Saves one run, each rank its part. All calls but on_piece and active are collective. Events are given
/// on rank 0 alone.
class Saving {
 public:
  using Say = std::function<void(const spec::record::Event&)>;  ///< tells and records an event

  /// `config`: examined when saving, its folder may still change until then. `patience`: how long the last
  /// save is tried again.
  Saving(const spec::RunConfig& config, LayoutGroups& groups, Say say,
         std::chrono::milliseconds patience = std::chrono::seconds(60));
  /// Of ranks that each hold everything.
  Saving(const spec::RunConfig& config, Communicator& communicator, Say say,
         std::chrono::milliseconds patience = std::chrono::seconds(60));

  /// Called whenever one of the parameters' tensors comes to be written while steps wait, and after a save
  /// that failed.
  void on_piece(std::function<void()> piece) { piece_ = std::move(piece); }
  /// Called before each save, on all ranks: what it throws is what failed of the save.
  void on_save(std::function<void()> begins) { begins_ = std::move(begins); }

  /// With checkpoint.asynchronous, where the run is saved on the way: takes the host's memory for a copy of
  /// the state, so that no save has to. Where a host lacks it, a warning says so, and steps will wait for
  /// saves. Without this call they do, too. `free`: memory of this rank's host that may be taken [B].
  void take_memory(const ParameterBuffers& buffers, std::int64_t free = available_host_memory());

  /// A save while the run goes on: returns when the buffers may change again. One that is still under way is
  /// waited for first. Where the disk does not take it, a warning says so, now or from between_steps, and the
  /// run goes on; older checkpoints are as they were. Errors: AgreedError(non_finite).
  void on_the_way(const ParameterBuffers& buffers, const checkpoint::State& state);

  /// Whether a save goes on beside the steps, or one that failed is to be made up for: the same on all ranks.
  bool active() const { return beside_ != nullptr || steps_until_made_up_ > 0; }
  /// After each step: tells what became of a save that goes on beside them. Whether a save that failed is to
  /// be made up for now: after the next step, and where that fails, too, after twice as many steps each time.
  /// Errors: AgreedError(non_finite).
  bool between_steps();

  /// Waits until a save that is under way has ended, and tells what became of it: before a run ends by an
  /// error that all its ranks know of, so that what is good is not lost. Errors: as between_steps.
  void finish() { wait_for_it(); }

  /// The step of the last checkpoint of this start; the same on all ranks.
  std::optional<std::int64_t> saved() const { return saved_; }
  /// Whether at_last was called, and did not save.
  bool gave_up() const { return gave_up_; }

  /// The save that the end of the run rests on, once one that is under way has ended. Where the disk does not
  /// take it, it is tried again until it does, until the patience is over, or until a signal comes that had
  /// not come before. Errors: AgreedError(io) that says what is lost, what is not, and how to go on;
  /// AgreedError(non_finite).
  void at_last(const ParameterBuffers& buffers, const checkpoint::State& state, const StopSignal& stop);

 private:
  checkpoint::Retention retention() const { return {config_.checkpoint_keep, config_.keep_best}; }
  /// Saves while steps wait. What failed, when something did that may succeed later.
  std::optional<std::string> failure(const ParameterBuffers& buffers, const checkpoint::State& state);
  /// Begins a save that goes on beside the steps; otherwise as `failure`.
  std::optional<std::string> failure_to_begin(const ParameterBuffers& buffers,
                                              const checkpoint::State& state);
  /// Tells what became of the save beside the steps, where it has ended.
  void settle();
  /// Returns at once where none is under way.
  void wait_for_it();
  void report(const checkpoint::Saved& saved, const spec::record::Checkpoint& event);
  void report_failure(std::int64_t step, const std::string& text);
  std::string way_out(const checkpoint::State& state) const;

  const spec::RunConfig& config_;
  std::unique_ptr<LayoutGroups> own_groups_;
  LayoutGroups& groups_;
  Say say_;
  std::function<void()> piece_ = [] {}, begins_ = [] {};
  std::chrono::milliseconds patience_;
  bool asynchronous_ = false;
  checkpoint::HostMemory memory_;
  std::unique_ptr<SaveUnderWay> beside_;
  std::int64_t steps_until_made_up_ = 0;  ///< of a save that failed; 0: none
  std::int64_t failed_in_a_row_ = 0;
  std::optional<std::int64_t> saved_;
  bool gave_up_ = false;
};

}  // namespace assay::impl::run
