#pragma once
// The learning rate as a pure function of the step. Equations, sources and example: spec/batch/schedule.md.
#include <cstdint>

namespace assay::spec {

enum class ScheduleKind { constant, cosine, wsd };

/// How wsd falls in its last part: straight, or as 1 - sqrt(x).
enum class DecayShape { linear, one_minus_sqrt };

struct Schedule {
  ScheduleKind kind = ScheduleKind::constant;
  double peak = 0;                ///< highest learning rate
  std::int64_t steps = 0;         ///< optimizer steps of the whole run
  std::int64_t warmup_steps = 0;  ///< linear rise; step warmup_steps - 1 is the first at the peak
  std::int64_t decay_steps = 0;   ///< wsd only: length of the fall at the end
  double final_ratio = 0;         ///< cosine and wsd: rate of the last step / peak
  DecayShape decay_shape = DecayShape::linear;  ///< wsd only
};

/// Errors: SpecError schedule_c1 (peak not finite and > 0), schedule_c2 (steps < 1, or the parts do not fit
/// in them), schedule_c3 (final_ratio outside [0, 1]).
void check(const Schedule& schedule);

/// Learning rate of optimizer step `step` in [0, steps). The first step of a warm-up of w steps runs at peak
/// / w, never at 0; the last step of the run runs at exactly final_ratio * peak (cosine, wsd). Errors: as
/// `check`, and SpecError schedule_c4 (step outside [0, steps)).
double learning_rate(const Schedule& schedule, std::int64_t step);

}  // namespace assay::spec
