#include "impl/metrics/phases.hpp"

#include <ATen/ATen.h>

#include "impl/metrics/op_times.hpp"

namespace assay::impl::run {

static_assert(static_cast<std::size_t>(Phase::count) <= metrics::most_phases);

const char* to_string(Phase phase) {
  constexpr const char* names[] = {"data_wait", "forward", "backward", "reduce", "clip", "update", "other"};
  return names[static_cast<std::size_t>(phase)];
}

void PhaseClock::restart() {
  range_.end();
  seconds_.fill(0);
  phases_.clear();
  phase_ = Phase::other;
  since_ = std::chrono::steady_clock::now();
  if (device_.is_cuda()) mark(phase_);
}

void PhaseClock::enter(Phase phase) {
  if (entered_) entered_(phase);
  metrics::enter_phase(static_cast<std::size_t>(phase));
  range_.turn_to([&] { return to_string(phase); });
  if (device_.is_cuda()) return mark(phase);
  turn_to(phase);
}

void PhaseClock::turn_to(Phase phase) {
  const auto now = std::chrono::steady_clock::now();
  seconds_[static_cast<std::size_t>(phase_)] += std::chrono::duration<double>(now - since_).count();
  phase_ = phase;
  since_ = now;
}

void PhaseClock::mark(Phase phase) {
  if (events_.size() == phases_.size()) events_.emplace_back(cudaEventDefault);
  events_[phases_.size()].record();
  phases_.push_back(phase);
}

PhaseSeconds PhaseClock::seconds() {
  range_.end();
  if (device_.is_cuda()) return seconds_between_events();
  turn_to(phase_);
  return seconds_;
}

PhaseSeconds PhaseClock::seconds_between_events() {
  mark(phases_.back());
  events_[phases_.size() - 1].synchronize();
  PhaseSeconds seconds{};
  for (std::size_t i = 0; i + 1 < phases_.size(); ++i)
    seconds[static_cast<std::size_t>(phases_[i])] += 1e-3 * events_[i].elapsed_time(events_[i + 1]);
  return seconds;
}

}  // namespace assay::impl::run
