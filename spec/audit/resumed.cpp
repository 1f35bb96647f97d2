// Whether counts, rates and losses go on from where they were before a restart.
#include <algorithm>
#include <vector>

#include "spec/audit/groups.hpp"
#include "spec/audit/loss_goes_on.hpp"
#include "spec/audit/relations.hpp"
#include "spec/text/quantity.hpp"

namespace assay::spec::audit {
namespace {

/// Whether stretch `k` begins no later than the second line of the one before: a run whose first line is lost
/// does, and no line tells it from a restart of a checkpoint that early, of which nothing had come yet.
bool begins_anew(const Evidence& e, std::size_t k) {
  const Stretch &before = e.stretches[k - 1], &here = e.stretches[k];
  if (before.end - before.begin < 3) return false;
  const auto &number = (*e.steps[here.begin])[Field::step],
             &second = (*e.steps[before.begin + 1])[Field::step];
  return number && second && number->value <= second->value;
}

}  // namespace

Result judge_resume(const Evidence& e) {
  Result out = holding(0);
  std::string what;
  for (std::size_t k = 1; k < e.stretches.size(); ++k) {
    const Step& resumed = *e.steps[e.stretches[k].begin];
    const auto& number = resumed[Field::step];
    // The last step before the restart that is not later than the first after it.
    const Step* reference = nullptr;
    for (std::size_t i = e.stretches[k - 1].begin; number && i < e.stretches[k - 1].end; ++i)
      if (const auto& n = (*e.steps[i])[Field::step]; n && n->value <= number->value) reference = e.steps[i];
    if (!reference || begins_anew(e, k)) continue;
    ++out.judged;
    const double steps = number->value - (*reference)[Field::step]->value;
    const auto &total = resumed[Field::tokens_total], &before = (*reference)[Field::tokens_total];
    if (total && before && e.tokens_per_step) {
      const Interval expected = wide(*before) + exact_interval(steps) * *e.tokens_per_step;
      if (!expected.meets(wide(*total))) {
        contradict(out, total->value, expected, resumed.line);
        blame(out, "tokens_not_resumed", "the count of tokens did not go on from the checkpoint's");
        what = "tokens since the start at step " + shown(number->value, Unit::steps);
      }
    }
    const auto &seen = resumed[Field::sequences_total], &seen_before = (*reference)[Field::sequences_total];
    if (const auto sequences = e.of(Setting::sequences); seen && seen_before && sequences) {
      const Interval expected = wide(*seen_before) + exact_interval(steps) * *sequences;
      if (!expected.meets(wide(*seen))) {
        contradict(out, seen->value, expected, resumed.line);
        blame(out, "tokens_not_resumed", "the count of sequences did not go on from the checkpoint's");
        what = "sequences since the start at step " + shown(number->value, Unit::steps);
      }
    }
    const auto &rate = resumed[Field::learning_rate], &rate_before = (*reference)[Field::learning_rate];
    if (rate && rate_before && steps == 0 && !wide(*rate).meets(wide(*rate_before))) {
      contradict(out, rate->value, wide(*rate_before), resumed.line);
      blame(out, "schedule_not_resumed",
            "the learning-rate schedule did not go on from the checkpoint's step");
      what = "learning rate at step " + shown(number->value, Unit::steps);
    }
    if (judge_loss_resumed(e, k, out)) what = "loss from step " + shown(number->value, Unit::steps) + " on";
  }
  // What is counted since the start is held from line to line there (tokens_total).
  std::string told;
  const std::vector<std::size_t> later = restarts_at_later_steps(e);
  for (std::size_t k = 0; k < later.size(); ++k) {
    const auto stretch = std::find_if(e.stretches.begin(), e.stretches.end(),
                                      [&](const Stretch& one) { return one.end > later[k]; });
    const std::size_t end = k + 1 < later.size() ? std::min(later[k + 1], stretch->end) : stretch->end;
    const auto jumps = judge_loss_goes_on(e, later[k], end, out, told);
    out.judged += jumps.has_value();
    if (jumps.value_or(false))
      what = "loss from step " + shown((*e.steps[later[k]])[Field::step]->value, Unit::steps) + " on";
  }
  if (out.verdict == Verdict::contradicts) out.note = what + " does not go on from before the restart";
  if (out.verdict == Verdict::holds) out.note = told;
  if (out.judged == 0 && !later.empty())
    return not_judged("six losses before the restart and three behind it");
  if (out.judged == 0) return not_judged("a restart");
  return out;
}

}  // namespace assay::spec::audit
