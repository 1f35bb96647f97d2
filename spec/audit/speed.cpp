// Speed that no machine has, whether or not the log prints an MFU of it.
#include <algorithm>

#include "spec/audit/conventions.hpp"
#include "spec/audit/groups.hpp"
#include "spec/audit/relations.hpp"
#include "spec/flops/conventions.hpp"
#include "spec/text/quantity.hpp"

namespace assay::spec::audit {
namespace {

/// The least that a token takes [flop]: `exact`; where attention stops at the ends of documents, a token that
/// attends to itself alone.
std::optional<double> least_flops(const Evidence& e) {
  const auto& end = e.record[Setting::end_of_document];
  if (end && end->value >= 0 && e.model) {
    const auto alone = flops_per_token(Convention::exact, *e.model, 1);
    if (alone.flops) return alone.flops->to_double();
  }
  if (const auto exact = counted_flops(e, "exact")) return exact->low;
  return std::nullopt;
}

/// A number as one GPU's, at the least: an unlabelled one may be that of all.
std::optional<double> of_one(const Evidence& e, double number, Scope scope) {
  if (scope == Scope::gpu) return number;
  return e.gpus ? std::optional(number / *e.gpus) : std::nullopt;
}

/// FLOP/s of one GPU at the least, by each pair of numbers that a step prints; the highest of them.
std::optional<double> least_speed(const Evidence& e, const Step& step, const std::optional<double>& flops) {
  const auto &achieved = step[Field::flops_rate], &rate = step[Field::tokens_per_second],
             &seconds = step[Field::seconds], &tokens = step[Field::tokens];
  std::optional<double> most;
  const auto take = [&](std::optional<double> speed) {
    if (speed && (!most || *speed > *most)) most = speed;
  };
  if (usable(achieved)) take(of_one(e, achieved->low, e.record.format.flops_rate));
  if (!flops) return most;
  if (usable(rate)) take(of_one(e, rate->low * *flops, e.record.format.tokens_per_second));
  double of_step = usable(tokens) ? wide(*tokens).low : 0;
  if (of_step == 0 && e.tokens_per_step) {
    // A configured accumulation may still be divided by the ranks.
    const bool divided = e.accumulation_is_configured && e.tokens_basis != "as printed" && e.ranks;
    of_step = e.tokens_per_step->low / (divided ? *e.ranks : 1);
  }
  if (usable(seconds) && of_step > 0) take(of_one(e, of_step * *flops / wide(*seconds).high, Scope::all));
  return most;
}

}  // namespace

void judge_speed(const Evidence& e, Result& out) {
  const Printed* printed = e.printed_peak();
  const std::optional<double> peak = e.dense_peak ? e.dense_peak
                                     : printed    ? std::optional(wide(*printed).high)
                                                  : std::nullopt;
  if (!peak || e.on_cpu()) return;
  const auto flops = least_flops(e);
  const bool alone = out.verdict == Verdict::cannot_be_judged;  // no MFU is printed
  std::int64_t above = 0;
  for (const Step* step : e.steps) {
    const auto speed = least_speed(e, *step, flops);
    if (!speed) continue;
    const double share = *speed / *peak;
    if (out.verdict == Verdict::cannot_be_judged) out = holding(0), out.recomputed = {0, 1};
    ++out.judged;
    // No line prints this share: what it is made of does.
    if (alone && out.verdict != Verdict::contradicts) {
      out.printed = share;
      out.unprinted = true;
      out.recomputed = exact_interval(share);
      out.note = "no MFU is printed: what tokens, time or FLOP/s make";
    }
    if (share <= 1 + off_by_three_digits) continue;
    const auto& shown_there = (*step)[Field::mfu];
    const bool first = out.verdict != Verdict::contradicts;
    const bool unprinted = !shown_there || not_measured(*shown_there);
    contradict(out, unprinted ? share : shown_there->value, exact_interval(share), step->line);
    if (first) out.off_by = share, out.unprinted = unprinted;
    ++above;
  }
  if (above == 0) return;
  out.note = "what the printed numbers make is more than the dense peak of the GPU";
  blame(out, "speed_impossible",
        "more than the dense peak: tokens, time or FLOP/s are not what they are called (more GPUs ran, fewer "
        "tokens were computed, another unit), or the GPU or its dtype is another");
}

}  // namespace assay::spec::audit
