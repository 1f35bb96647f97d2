#pragma once
// The time of a step by op: every moment belongs to the innermost running op, or to none.
#include <ATen/core/Tensor.h>
#include <ATen/cuda/CUDAEvent.h>

#include <array>
#include <chrono>
#include <deque>
#include <vector>

#include "spec/time/waterfall.hpp"

namespace assay::impl::metrics {

/// Names the op that this thread runs (on a GPU: enqueues) while it lives. Scopes nest; time belongs to the
/// innermost. Without effect when no OpClock runs. Inside a recompute FlopScope forward is recompute.
class OpScope {
 public:
  OpScope(spec::time::StepOp op, spec::time::StepPass pass);
  /// A GEMM; the FlopScope around it says which.
  explicit OpScope(spec::time::StepPass pass);
  OpScope(const OpScope&) = delete;
  OpScope& operator=(const OpScope&) = delete;
  ~OpScope();

 private:
  int outer_ = 0;
  bool timed_ = false;
};

/// Whether an OpClock runs on this thread: then ops must be called one by one.
bool ops_are_timed();

/// Times of a step by op.
struct OpTimes {
  std::vector<spec::time::MeasuredPart> parts;  ///< ops that ran, in the order of their enumeration
  double between = 0;                           ///< in no op [s]
  double seconds() const;                       ///< all of it
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
  static constexpr int none = -1;
  static constexpr std::size_t kinds = spec::time::step_ops_count * spec::time::step_passes;

  /// From here on time is `kind`'s; `begins` counts a call of it.
  void mark(int kind, bool begins);
  void charge(int kind, double seconds);

  const at::Device device_;
  int kind_ = none;
  std::chrono::steady_clock::time_point since_;
  std::array<double, kinds> seconds_{};
  std::array<std::int64_t, kinds> calls_{};
  double between_ = 0;
  std::deque<at::cuda::CUDAEvent> events_;  ///< recorded where marks_[i] begins; kept to be used again
  std::vector<int> marks_;
};

}  // namespace assay::impl::metrics
