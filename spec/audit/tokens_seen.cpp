// Rates that Hugging Face's Trainer makes, or does not make, of the tokens that it counts. Source:
// huggingface/transformers trainer.py, num_tokens and num_input_tokens_seen (training_args.py,
// include_num_input_tokens_seen: "all" or "non_padding"); trainer_utils.py, speed_metrics.
#include <algorithm>
#include <cmath>

#include "spec/audit/groups.hpp"
#include "spec/audit/summary_steps.hpp"
#include "spec/text/quantity.hpp"

namespace assay::spec::audit {
namespace {

struct TokensSeen {
  Interval per_step;    ///< the least and the most of any line
  bool always = false;  ///< every line has the same, to the token: no batch and no sequence was another
};

/// Tokens of one step, by those seen at each line, all from the run's start; nothing where they grow by less
/// than `alike` of the most (inputs padded to the longest of a batch).
std::optional<TokensSeen> tokens_seen_per_step(const Evidence& e) {
  constexpr double alike = 0.98;     // a batch may be smaller at the end of the data
  constexpr std::size_t enough = 3;  // two lines may have as many tokens by chance
  std::optional<Interval> out;
  double steps = 0, tokens = 0;
  std::size_t lines = 0;
  bool exact = true;
  for (const Step* step : e.steps) {
    const auto &seen = (*step)[Field::tokens_total], &number = (*step)[Field::step];
    if (!usable(seen) || !number) continue;
    if (!(number->value > steps) || !(seen->value > tokens)) return std::nullopt;
    const double each = (seen->value - tokens) / (number->value - steps);
    out = out ? Interval{std::min(out->low, each), std::max(out->high, each)} : exact_interval(each);
    exact = exact && seen->exact();
    steps = number->value, tokens = seen->value, ++lines;
  }
  if (!out || out->low < alike * out->high) return std::nullopt;
  return TokensSeen{*out, exact && lines >= enough && out->low == out->high};
}

}  // namespace

/// Trainer counts the tokens of one rank's inputs before it begins, for its rate (num_tokens), and those of
/// all ranks as they are seen: the rate is of all, or of one of as many ranks as fit. But the rate counts
/// padding, which the tokens seen may leave out ("non_padding": the rate is above them), and with max_steps
/// it takes every batch for as large as the first (above or below). So another rate contradicts only where
/// every line has seen the same tokens, as of packed sequences: no batch is padded by more than another, and
/// the first is as large as any.
Result judge_tokens_rate_of_state(const Evidence& e) {
  const auto &printed = e.record[Setting::average_tokens_per_second],
             &seconds = e.record[Setting::total_seconds];
  if (!usable(printed) || !usable(seconds)) return not_judged("average tokens/s");
  const auto seen = tokens_seen_per_step(e);
  if (!seen || !of_one_start(e)) return not_judged("tokens seen at each line, since the start");
  const double last = (*e.steps.back())[Field::step] ? (*e.steps.back())[Field::step]->value : 0;
  const auto& planned = e.record[Setting::max_steps];
  const Interval steps{last, std::max(last, usable(planned) ? planned->value : last)};
  const Interval all = about(steps * seen->per_step / wide(*seconds)), rate = wide(*printed);
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
  if (!seen->always)
    return not_judged("the padding and the first batch of a rate " +
                      shown(printed->value / all.middle(), Unit::none) +
                      " times that of the tokens seen: these may leave padding out, and with max_steps the "
                      "first batch may stand for all");
  contradict(out, printed->value, all, printed->line);
  blame(
      out, "tokens_rate_other",
      "neither the tokens seen over the time of the run, nor one rank's share of them; every line has seen "
      "as many, so that no first batch is another, nor padding, unless all sequences are padded by as much");
  return out;
}

std::optional<Interval> tokens_rate_of_run(const Evidence& e) {
  const auto& seconds = e.record[Setting::total_seconds];
  if (!e.trainer.summary_of_state || !usable(seconds) || e.steps.empty() || !of_one_start(e))
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
