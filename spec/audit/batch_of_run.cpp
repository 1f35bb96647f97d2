#include "spec/audit/batch_of_run.hpp"

#include <algorithm>
#include <cmath>

#include "spec/audit/invariants.hpp"

namespace assay::spec::audit {
namespace {

/// Trainer plans sys.maxsize passes where the data has no length, which only runs by `max_steps` may have.
/// No other plan has so many. [passes]
constexpr double endless = 0x1p62;

bool is_by_steps(const Evidence& e) {
  const auto& passes = e.record[Setting::planned_epochs];
  return usable(passes) && passes->value > endless;
}

/// Steps of one pass over the data, at the least: the planned ones are at most as many in each of the passes,
/// whose number is rounded up. 1 where nothing says. [steps]
double least_steps_of_a_pass(const Evidence& e) {
  const auto &steps = e.record[Setting::max_steps], &passes = e.record[Setting::planned_epochs];
  if (!usable(steps) || !usable(passes)) return 1;
  return std::max(1.0, std::ceil(steps->value / passes->value));
}

}  // namespace

std::optional<Interval> stated_batch(const Evidence& e) {
  const auto stated = e.of(Setting::sequences);
  if (stated || !e.micro || !e.accumulation || !e.ranks) return stated;
  return *e.micro * *e.accumulation * exact_interval(*e.ranks);
}

Interval mean_of_batches(const Evidence& e, Interval batch) {
  if (!e.trainer.last_batches_are_small || is_by_steps(e)) return batch;
  const double steps = least_steps_of_a_pass(e);
  const auto& planned = e.record[Setting::max_steps];
  // A pass has at least one sequence more than all its steps but one, and less than one step more than all:
  // the last passes of an accumulation may make no step. A share of a pass is rounded up to a whole step.
  const double rounded_up = usable(planned) ? std::max(0.0, 1 - 1 / planned->value) : 0;
  return {((steps - 1) * batch.low + 1) / steps * rounded_up, ((steps + 1) * batch.high - 1) / steps};
}

bool BatchOfRun::allows(Interval sequences) const {
  if (mean) return mean->meets(sequences);
  if (passes <= 0) return true;
  return std::floor(sequences.high / passes) * passes >= std::max(sequences.low, passes);
}

BatchOfRun batch_of_run(const Evidence& e) {
  BatchOfRun out;
  if (const auto batch = stated_batch(e)) {
    out.mean = mean_of_batches(e, *batch);
    out.not_so = "which batches of " + shown(batch->middle(), Unit::none) + " do not make";
  } else if (is_by_steps(e)) {
    out.passes = e.micro ? e.micro->low : 1;
    out.not_so = out.passes > 1 ? "no whole number of passes of " + shown(out.passes, Unit::none)
                                : "no whole number of them";
  }
  return out;
}

}  // namespace assay::spec::audit
