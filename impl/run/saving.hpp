#pragma once
// When a save fails: the weights are still in memory, and a run that goes on, or waits, can save them later.
#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "impl/checkpoint/checkpoint.hpp"
#include "impl/params/layouts/layout_groups.hpp"
#include "impl/run/stop_signal.hpp"
#include "spec/config/run_config.hpp"
#include "spec/record/event.hpp"

namespace assay::impl::run {

/// Saves one run on rank 0; the other ranks wait for it. Both calls are collective.
class Saving {
 public:
  using Say = std::function<void(const spec::record::Event&)>;  ///< tells and records an event

  /// `config`: looked at when saving, its folder may still change until then. `patience`: how long the last
  /// save is tried again.
  Saving(const spec::RunConfig& config, Communicator& communicator, Say say,
         std::chrono::milliseconds patience = std::chrono::seconds(60));
  /// Of a layout that may hold the state in shares: the ranks that share rank 0's give it theirs.
  Saving(const spec::RunConfig& config, LayoutGroups& groups, Say say,
         std::chrono::milliseconds patience = std::chrono::seconds(60));

  /// Called whenever one of the parameters' tensors comes to be written, and after a save that failed.
  void on_piece(std::function<void()> piece) { piece_ = std::move(piece); }

  /// A save while the run goes on. Where the disk does not take it, a warning says so and the run goes on:
  /// the next save tries anew, older checkpoints are as they were. Errors: UserError(non_finite).
  void on_the_way(const ParameterBuffers& buffers, const checkpoint::State& state);

  /// The save that the end of the run rests on. Where the disk does not take it, it is tried again until it
  /// does, until the patience is over, or until a signal comes that had not come before. Errors:
  /// UserError(io) that says what is lost, what is not, and how to go on; UserError(non_finite).
  void at_last(const ParameterBuffers& buffers, const checkpoint::State& state, const StopSignal& stop);

 private:
  /// What failed, when something did that may succeed later.
  std::optional<std::string> failure(const ParameterBuffers& buffers, const checkpoint::State& state,
                                     const checkpoint::StateSource& source);
  /// Runs `on_rank_0` there while the ranks that hold other shares of its state serve them, then waits for
  /// all.
  void collectively(const ParameterBuffers& buffers,
                    const std::function<void(const checkpoint::StateSource&)>& on_rank_0);
  std::string way_out(const checkpoint::State& state) const;

  const spec::RunConfig& config_;
  Communicator& communicator_;
  LayoutGroups* groups_ = nullptr;  ///< where the state may be in shares
  Say say_;
  std::function<void()> piece_ = [] {};
  std::chrono::milliseconds patience_;
};

}  // namespace assay::impl::run
