// Rates that Hugging Face's Trainer makes, or does not make, of the tokens that it counts. Source:
// huggingface/transformers trainer.py, num_tokens and num_input_tokens_seen; trainer_utils.py, speed_metrics.
#include <algorithm>
#include <cmath>

#include "spec/audit/groups.hpp"
#include "spec/audit/summary_steps.hpp"
#include "spec/text/quantity.hpp"

namespace assay::spec::audit {
namespace {

/// Tokens of one step, by those seen at each line, all from the run's start; nothing where they grow by less
/// than `alike` of the most (inputs padded to the longest of a batch).
std::optional<Interval> tokens_seen_per_step(const Evidence& e) {
  constexpr double alike = 0.98;  // a batch may be smaller at the end of the data
  std::optional<Interval> out;
  double steps = 0, tokens = 0;
  for (const Step* step : e.steps) {
    const auto &seen = (*step)[Field::tokens_total], &number = (*step)[Field::step];
    if (!usable(seen) || !number) continue;
    if (!(number->value > steps) || !(seen->value > tokens)) return std::nullopt;
    const double each = (seen->value - tokens) / (number->value - steps);
    out = out ? Interval{std::min(out->low, each), std::max(out->high, each)} : exact_interval(each);
    steps = number->value, tokens = seen->value;
  }
  if (!out || out->low < alike * out->high) return std::nullopt;
  return out;
}

}  // namespace

/// Trainer counts the tokens of one rank's inputs before it begins, for its rate (num_tokens), and those of
/// all ranks as they are seen: the rate is of all, or of one of as many ranks as fit.
Result judge_tokens_rate_of_state(const Evidence& e) {
  const auto &printed = e.record[Setting::average_tokens_per_second],
             &seconds = e.record[Setting::total_seconds];
  if (!usable(printed) || !usable(seconds)) return not_judged("average tokens/s");
  const auto each = tokens_seen_per_step(e);
  if (!each || !of_one_start(e)) return not_judged("tokens seen at each line, since the start");
  const double last = (*e.steps.back())[Field::step] ? (*e.steps.back())[Field::step]->value : 0;
  const auto& planned = e.record[Setting::max_steps];
  const Interval steps{last, std::max(last, usable(planned) ? planned->value : last)};
  const Interval all = about(steps * *each / wide(*seconds)), rate = wide(*printed);
  Result out = holding(1);
  out.printed = printed->value;
  out.recomputed = all;
  out.note = "num_input_tokens_seen over train_runtime";
  if (all.meets(rate)) return out;
  const double share = std::round(all.middle() / printed->value);
  const bool one_rank = share >= 2 && (!e.ranks || *e.ranks == share);
  if (one_rank && all.meets(rate * exact_interval(share))) {
    out.recomputed = all / exact_interval(share);
    out.note += ", of one rank of " + shown(share, Unit::none);
    return out;
  }
  contradict(out, printed->value, all, printed->line);
  blame(out, "tokens_rate_other",
        "neither the tokens seen over the time of the run, nor one rank's share of them");
  return out;
}

std::optional<Interval> tokens_rate_of_run(const Evidence& e) {
  const auto& seconds = e.record[Setting::total_seconds];
  if (e.record.format.name != "hugging_face" || !usable(seconds) || e.steps.empty() || !of_one_start(e))
    return std::nullopt;
  const auto &seen = (*e.steps.back())[Field::tokens_total], &step = (*e.steps.back())[Field::step];
  const auto& planned = e.record[Setting::max_steps];
  // Of all steps: those behind the last line are not in its count.
  if (!usable(seen) || !step || !planned || planned->value != step->value) return std::nullopt;
  for (const Result& one : {judge_steps_rate(e), judge_tokens_rate_of_state(e)})
    if (one.verdict == Verdict::contradicts) return std::nullopt;
  return wide(*seen) / wide(*seconds);
}

}  // namespace assay::spec::audit
