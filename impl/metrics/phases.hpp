#pragma once
// Where a step's time goes. Phases do not overlap, so they add up to the step.
#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/cuda/CUDAEvent.h>

#include "impl/metrics/ranges.hpp"

namespace assay::impl::run {

enum class Phase { data_wait, forward, backward, reduce, clip, update, other, count };
const char* to_string(Phase phase);  ///< "data_wait"

/// Seconds per phase.
using PhaseSeconds = std::array<double, static_cast<std::size_t>(Phase::count)>;

/// Splits time into phases: every moment since `restart` belongs to exactly one phase. On the CPU by the wall
/// clock; on a GPU by events in its stream, so that work belongs to the phase that enqueued it and nothing
/// waits before `seconds` is called. An OpClock and a trace of this thread learn the phases.
class PhaseClock {
 public:
  explicit PhaseClock(at::Device device) : device_(device) { restart(); }
  /// Calls `entered` at the start of every phase from here on.
  void on_enter(std::function<void(Phase)> entered) { entered_ = std::move(entered); }
  /// Forgets everything and starts in Phase::other.
  void restart();
  /// Time (on a GPU: work given) from here on belongs to `phase`.
  void enter(Phase phase);
  /// Seconds per phase up to now. On a GPU, waits for the work given so far.
  PhaseSeconds seconds();

 private:
  void turn_to(Phase phase);
  void mark(Phase phase);
  PhaseSeconds seconds_between_events();

  at::Device device_;
  std::function<void(Phase)> entered_;
  Phase phase_ = Phase::other;
  std::chrono::steady_clock::time_point since_;
  PhaseSeconds seconds_{};
  std::deque<at::cuda::CUDAEvent> events_;  ///< recorded at the start of phases_[i]; kept to be used again
  std::vector<Phase> phases_;
  metrics::Range range_;
};

}  // namespace assay::impl::run
