#include <algorithm>
#include <cmath>

#include "spec/audit/conventions.hpp"
#include "spec/audit/groups.hpp"
#include "spec/flops/conventions.hpp"
#include "spec/text/quantity.hpp"

namespace assay::spec::audit {

namespace {

/// The least that can be executed, as a share of what the log's MFU counts. 1 where a sequence is one
/// document. Attention that stops at the ends of documents computes fewer pairs than the convention counts:
/// at the least, with documents of one token, each token's pair with itself, as in a sequence of length 1.
/// Without a model that bound is not known.
double least_executed(const Evidence& e) {
  const auto& end = e.record[Setting::end_of_document];
  if (end && end->value < 0) return 1;
  if (!e.model) return 0;
  std::optional<Interval> counted =
      e.steps.empty() ? e.of(Setting::flops_per_token) : e.flops_per_token(*e.steps.front());
  if (!counted) counted = counted_flops(e, e.record.format.convention);
  const auto alone = flops_per_token(Convention::exact, *e.model, 1);
  if (!counted || !alone.flops) return 0;
  return std::min(1.0, alone.flops->to_double() / counted->high);
}

}  // namespace

Result judge_mfu_possible(const Evidence& e) {
  Result out = holding(0);
  std::int64_t sentinels = 0, not_numbers = 0;
  for (const Step* step : e.steps)
    for (const Field field : {Field::mfu, Field::hfu}) {
      const auto& share = (*step)[field];
      if (!share) continue;
      if (not_measured(*share)) {
        ++(std::isnan(share->value) ? not_numbers : sentinels);
        continue;
      }
      ++out.judged;
      if (out.verdict != Verdict::contradicts) out.printed = share->value;
      if (share->value >= 0 && share->low <= 1) continue;
      contradict(out, share->value, {0, 1}, share->line ? share->line : step->line);
    }
  if (out.judged == 0) {
    out = not_judged(sentinels + not_numbers ? "MFU: only \"not measured\" is printed" : "MFU");
    judge_speed(e, out);
    return out;
  }
  if (out.verdict != Verdict::contradicts) out.recomputed = {0, 1};
  if (out.verdict == Verdict::contradicts) {
    out.note = "no machine does more than its peak, nor less than nothing";
  } else if (sentinels) {
    out.note = std::to_string(sentinels) + " printed as -1 or -100 %: not measured";
  } else if (not_numbers) {
    out.note = std::to_string(not_numbers) + " printed as NaN: not measured";
  }
  if (out.verdict != Verdict::contradicts) judge_speed(e, out);
  return out;
}

Result judge_hfu(const Evidence& e) {
  Result out = holding(0);
  const double least = least_executed(e);
  std::int64_t below = 0;
  double lowest = 1;
  std::string rates;  // executed beside those of the model, where FLOP/s are compared
  for (const Step* step : e.steps) {
    const auto &mfu = (*step)[Field::mfu], &hfu = (*step)[Field::hfu];
    if (!mfu || !hfu || not_measured(*mfu) || not_measured(*hfu)) continue;
    ++out.judged;
    const double low = std::max(0.0, wide(*mfu).low), bound = low * least;
    const bool contradicts = wide(*hfu).high < bound;
    if (contradicts)
      contradict(out, hfu->value, {bound, 1}, step->line);
    else if (out.verdict != Verdict::contradicts)
      out.printed = hfu->value, out.recomputed = {bound, 1};
    if (contradicts || wide(*hfu).high >= low) continue;
    ++below;
    lowest = std::min(lowest, hfu->value / mfu->value);
  }
  for (const Step* step : e.steps) {
    const auto &model = (*step)[Field::flops_rate], &executed = (*step)[Field::hardware_flops_rate];
    if (!usable(model) || !usable(executed)) continue;
    ++out.judged;
    // Both are counted over whole sequences: nanotron's models, get_flops_per_sec.
    const bool contradicts = wide(*executed).high < wide(*model).low;
    // Their quotient stands nowhere in the log: the two are reported.
    if (out.judged == 1 || (contradicts && out.verdict != Verdict::contradicts)) {
      out.unprinted = true;
      out.printed = executed->value / model->value, out.recomputed = {1, 1e300};
      rates = shown(executed->value, Unit::flops_per_second) + " executed, " +
              shown(model->value, Unit::flops_per_second) + " of the model";
    }
    if (contradicts) contradict(out, executed->value / model->value, {1, 1e300}, step->line);
  }
  if (out.judged == 0) return not_judged("HFU beside MFU");
  if (out.verdict == Verdict::contradicts) {
    out.note = least < 1 ? "less than the model needs even where no token attends to another"
                         : "what was executed is at least what the model needs";
    blame(out, "hfu_below_mfu",
          (out.unprinted ? rates + ": the two" : std::string("MFU and HFU")) +
              " are exchanged, or count by different conventions");
  } else if (out.unprinted) {
    out.note = rates;
  } else if (below > 0) {
    out.note = "below MFU on " + std::to_string(below) + " of " + std::to_string(out.judged) +
               " lines, at the lowest " + fixed(100 * lowest, 1) +
               " % of it: MFU counts the pairs of a whole " +
               "sequence, and attention that stops at the ends of documents does not compute all of them";
    if (!e.record[Setting::end_of_document]) out.note += "; the log does not say whether it stops there";
  }
  return out;
}

}  // namespace assay::spec::audit
