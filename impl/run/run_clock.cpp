#include "impl/run/run_clock.hpp"

#include <numeric>

namespace assay::impl::run {

namespace {
/// Set when this library is loaded. The system's start of the process would be the wrapper's that became this
/// program by exec, which may have run for hours.
const auto trainer_began = std::chrono::steady_clock::now();
}  // namespace

RunClock::RunClock() : since_(trainer_began) {}

RunClock::Seconds RunClock::until(Clock::time_point now) const {
  Seconds seconds = seconds_;
  seconds[static_cast<std::size_t>(part_)] += std::chrono::duration<double>(now - since_).count();
  return seconds;
}

void RunClock::enter(RunPart part) {
  const auto now = Clock::now();
  seconds_ = until(now);
  since_ = now;
  part_ = part;
}

double RunClock::seconds() const {
  const Seconds seconds = until(Clock::now());
  return std::accumulate(seconds.begin(), seconds.end(), 0.0);
}

spec::record::Goodput RunClock::goodput(std::int64_t tokens, double data_wait) const {
  const Seconds seconds = until(Clock::now());
  const auto of = [&](RunPart part) { return seconds[static_cast<std::size_t>(part)]; };
  const double all = std::accumulate(seconds.begin(), seconds.end(), 0.0);
  return {.tokens_per_second = all > 0 ? static_cast<double>(tokens) / all : 0,
          .seconds = all,
          .start_up = of(RunPart::start_up),
          .steps = of(RunPart::steps) - data_wait,
          .data_wait = data_wait,
          .saves = of(RunPart::saves),
          .evaluation = of(RunPart::evaluation),
          .other = of(RunPart::other)};
}

}  // namespace assay::impl::run
