#include "spec/batch/schedule.hpp"

#include <cmath>
#include <numbers>
#include <string>

#include "spec/error.hpp"

namespace assay::spec {

namespace {

/// 1 at the start of the fall (x = 0), final_ratio at its end (x = 1).
double fallen(const Schedule& s, double x, double shape) {
  return x >= 1 ? s.final_ratio : 1 - (1 - s.final_ratio) * shape;
}

double cosine(const Schedule& s, double u) {
  const double warmup = static_cast<double>(s.warmup_steps), length = static_cast<double>(s.steps) - warmup;
  const double x = (u - warmup) / length;
  return fallen(s, x, (1 - std::cos(std::numbers::pi * x)) / 2);
}

double warmup_stable_decay(const Schedule& s, double u) {
  const double start = static_cast<double>(s.steps - s.decay_steps);
  if (u <= start) return 1;
  const double x = (u - start) / static_cast<double>(s.decay_steps);
  return fallen(s, x, s.decay_shape == DecayShape::linear ? x : std::sqrt(x));
}

}  // namespace

void check(const Schedule& s) {
  // schedule_c1
  require(std::isfinite(s.peak) && s.peak > 0, "schedule_c1",
          [&] { return "peak=" + std::to_string(s.peak); });
  const std::int64_t decay = s.kind == ScheduleKind::wsd ? s.decay_steps : 0;
  // schedule_c2
  require(s.steps >= 1 && s.warmup_steps >= 0 && decay >= 0 && s.warmup_steps <= s.steps &&
              decay <= s.steps - s.warmup_steps,
          "schedule_c2", [&] {
            return "steps=" + std::to_string(s.steps) + ", warmup_steps=" + std::to_string(s.warmup_steps) +
                   ", decay_steps=" + std::to_string(decay);
          });
  // schedule_c3
  require(s.final_ratio >= 0 && s.final_ratio <= 1, "schedule_c3",
          [&] { return "final_ratio=" + std::to_string(s.final_ratio); });
}

double learning_rate(const Schedule& s, std::int64_t step) {
  check(s);
  // schedule_c4
  require(step >= 0 && step < s.steps, "schedule_c4",
          [&] { return "step " + std::to_string(step) + " of " + std::to_string(s.steps); });
  const double u = static_cast<double>(step + 1);  // steps done when this one is
  if (step + 1 <= s.warmup_steps) return s.peak * (u / static_cast<double>(s.warmup_steps));
  switch (s.kind) {
    case ScheduleKind::constant:
      return s.peak;
    case ScheduleKind::cosine:
      return s.peak * cosine(s, u);
    case ScheduleKind::wsd:
      return s.peak * warmup_stable_decay(s, u);
  }
  return s.peak;
}

}  // namespace assay::spec
