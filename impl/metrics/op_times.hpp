#pragma once
// The time of a step by op: every moment belongs to the innermost running op or collective, or to none and
// then to the step's phase.
#include <ATen/core/Tensor.h>
#include <ATen/cuda/CUDAEvent.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <vector>

#include "impl/metrics/ranges.hpp"
#include "spec/parallel/collective.hpp"
#include "spec/time/waterfall.hpp"

namespace assay::impl::metrics {

/// A collective begins, or the rank waits for it.
enum class CollectivePart { begin, wait, count };

/// Phases of a step are numbered by whoever splits it (impl/metrics/phases.hpp); at most so many.
inline constexpr std::size_t most_phases = 8;

/// Names the op that this thread runs (on a GPU: enqueues) while it lives, for an OpClock and for traces.
/// Scopes nest; time belongs to the innermost. Without effect when neither of the two is there. Inside a
/// recompute FlopScope forward is recompute.
class OpScope {
 public:
  OpScope(spec::time::StepOp op, spec::time::StepPass pass);
  /// A GEMM; the FlopScope around it says which.
  explicit OpScope(spec::time::StepPass pass);
  OpScope(spec::Collective collective, CollectivePart part);
  OpScope(const OpScope&) = delete;
  OpScope& operator=(const OpScope&) = delete;
  ~OpScope();

 private:
  void mark(int kind);

  int outer_ = 0;
  bool timed_ = false;
  Range range_;
};

/// From here on this thread's time in no op belongs to this phase. Without effect when no OpClock runs.
void enter_phase(std::size_t phase);

/// Whether an OpClock runs on this thread: then ops must be called one by one.
bool ops_are_timed();

/// Time of a collective in a step.
struct CollectiveTime {
  spec::Collective collective;
  CollectivePart part;
  double calls = 0, seconds = 0;
};

/// Times of a step by op.
struct OpTimes {
  std::vector<spec::time::MeasuredPart> parts;         ///< ops that ran, in the order of their enumeration
  std::vector<CollectiveTime> collectives;             ///< likewise
  double between = 0;                                  ///< in none of these [s]
  std::array<double, most_phases> between_by_phase{};  ///< of it
  double seconds() const;                              ///< all of it
};

/// Times the ops of this thread while it lives. On the CPU by a monotonic clock; on a GPU by events in its
/// stream, recorded where an op begins and ends, so that nothing waits before `times` is called, and the time
/// between two ops' kernels counts as between. Errors: std::logic_error when another one runs on this thread.
class OpClock {
 public:
  explicit OpClock(at::Device device);
  OpClock(const OpClock&) = delete;
  OpClock& operator=(const OpClock&) = delete;
  ~OpClock();

  /// Forgets everything and starts anew, in no op.
  void restart();
  /// Up to now. On a GPU, waits for the work given so far.
  OpTimes times();

 private:
  friend class OpScope;
  friend void enter_phase(std::size_t phase);
  // Ops by pass, then collectives by part, then the phases in which none of these runs.
  static constexpr std::size_t first_collective = spec::time::step_ops_count * spec::time::step_passes;
  static constexpr std::size_t first_phase =
      first_collective + spec::collectives * static_cast<std::size_t>(CollectivePart::count);
  static constexpr std::size_t kinds = first_phase + most_phases;
  static bool is_outside(int kind) { return static_cast<std::size_t>(kind) >= first_phase; }

  /// From here on time is `kind`'s; `begins` counts a call of it.
  void mark(int kind, bool begins);
  void charge(int kind, double seconds);

  const at::Device device_;
  int outside_ = static_cast<int>(first_phase);  ///< the phase
  int kind_ = outside_;
  std::chrono::steady_clock::time_point since_;
  std::array<double, kinds> seconds_{};
  std::array<std::int64_t, kinds> calls_{};
  std::deque<at::cuda::CUDAEvent> events_;  ///< recorded where marks_[i] begins; kept to be used again
  std::vector<int> marks_;
};

}  // namespace assay::impl::metrics
