#pragma once
// Where the wall-clock time of a run goes, from the trainer's first instruction to its end. What ran before
// in the same process, a wrapper that ends in exec, and the loading of shared libraries are not the run's.
#include <array>
#include <chrono>
#include <cstdint>

#include "spec/record/event.hpp"

namespace assay::impl::run {

enum class RunPart { start_up, steps, saves, evaluation, other, count };

/// Every moment since the trainer was loaded belongs to exactly one part: to the start-up until another is
/// entered.
class RunClock {
 public:
  RunClock();
  void enter(RunPart part);
  double seconds() const;  ///< up to now
  /// Up to now. `tokens`: of all steps; `data_wait`: how long steps waited for the loader [s].
  spec::record::Goodput goodput(std::int64_t tokens, double data_wait) const;

 private:
  using Clock = std::chrono::steady_clock;
  using Seconds = std::array<double, static_cast<std::size_t>(RunPart::count)>;
  Seconds until(Clock::time_point now) const;

  RunPart part_ = RunPart::start_up;
  Clock::time_point since_;
  Seconds seconds_{};
};

}  // namespace assay::impl::run
