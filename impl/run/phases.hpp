#pragma once
// Where a step's time goes. Phases do not overlap, so they add up to the step.
#include <array>
#include <chrono>
#include <cstdint>

#include <ATen/core/Tensor.h>

namespace assay::impl::run {

enum class Phase { data_wait, forward, backward, reduce, clip, update, other, count };

/// Seconds per phase.
using PhaseSeconds = std::array<double, static_cast<std::size_t>(Phase::count)>;

/// Splits wall-clock time into phases: every moment since `restart` belongs to exactly one phase.
class PhaseClock {
 public:
  explicit PhaseClock(at::Device device) : device_(device) { restart(); }
  /// Forgets everything and starts in Phase::other.
  void restart();
  /// Time from here on belongs to `phase`. On a GPU, waits for the work given so far, so that it is charged
  /// to its own phase.
  void enter(Phase phase);
  /// Seconds per phase up to now.
  PhaseSeconds seconds();

 private:
  at::Device device_;
  Phase phase_ = Phase::other;
  std::chrono::steady_clock::time_point since_;
  PhaseSeconds seconds_{};
};

}  // namespace assay::impl::run
