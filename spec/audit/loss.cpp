#include <algorithm>
#include <cmath>
#include <numbers>

#include "spec/audit/groups.hpp"
#include "spec/model/initial_loss.hpp"
#include "spec/model/trainable.hpp"
#include "spec/text/quantity.hpp"

namespace assay::spec::audit {
namespace {

/// What other initialisations than ours may add to log V, and what a batch of few frequent words may take.
constexpr double below = 0.5, above = 1.5;

std::optional<double> vocabulary(const Evidence& e) {
  if (const auto& printed = e.record[Setting::vocab]; printed && printed->value > 1) return printed->value;
  if (e.model) return static_cast<double>(e.model->vocab);
  return std::nullopt;
}

/// The loss of the step before any update, if the log begins there.
const Printed* untrained_loss(const Evidence& e) {
  if (e.steps.empty()) return nullptr;
  const Step& first = *e.steps.front();
  const auto& number = first[Field::step];
  if (!first[Field::loss] || !number || number->value > 1) return nullptr;
  return &*first[Field::loss];
}

/// What may have been done to a mean loss, as factors.
void blame_scale(Result& out, const Evidence& e, double printed, Interval expected) {
  const auto fits = [&](double factor) {
    return factor > 0 && factor != 1 && expected.low * factor <= printed && printed <= expected.high * factor;
  };
  const double passes = e.accumulation ? e.accumulation->low : 1, ranks = e.ranks.value_or(1);
  if (fits(passes)) blame(out, "loss_summed_over_passes", "the sum over micro-batches, not their mean");
  if (fits(1 / passes)) blame(out, "loss_divided_twice", "divided by the accumulation once too often");
  if (fits(ranks)) blame(out, "loss_summed_over_ranks", "the sum over ranks, not their mean");
  if (fits(1 / ranks)) blame(out, "loss_divided_by_ranks", "divided by the number of ranks once too often");
  if (fits(1 / std::numbers::ln2)) blame(out, "loss_in_bits", "bits per token, not nats");
  if (!out.causes.empty()) return;
  if (printed < expected.low)
    blame(out, "loss_not_untrained", "the model is not untrained, or its targets are in its input");
  else
    blame(out, "loss_bad_start",
          "initial weights too large, a vocabulary larger than stated, or wrong targets");
}

}  // namespace

namespace {

/// The last step whose loss is finite; where a line has none, its gradient norm stands for it.
std::size_t last_finite(const Evidence& e) {
  for (std::size_t i = e.steps.size(); i > 0; --i) {
    const auto &loss = (*e.steps[i - 1])[Field::loss], &norm = (*e.steps[i - 1])[Field::gradient_norm];
    const auto& number = loss ? loss : norm;
    if (number && std::isfinite(number->value)) return i - 1;
  }
  return 0;
}

/// A cross-entropy below would be a text without surprise: the model sees its targets. [nats]
constexpr double least_loss = 1e-4;
/// log V is no bound: a diverged model is worse than one that guesses. Logits bound its loss: the largest and
/// the smallest differ by at most 2 |h| |w|. At first the final norm makes |h| = sqrt(D) and a row of the
/// head is some 0.02 sqrt(D) long, which is 0.04 D: 164 nats at D = 4,096. Training makes both longer: six
/// times leaves 1,000. [nats]
constexpr double most_loss = 1000;
constexpr double above_uniform = 5;  ///< more than initial weights add

/// A mean over the last steps against the entropy of the data.
void judge_floor(Result& out, const Evidence& e, const std::vector<const Step*>& with_loss, double least) {
  const std::size_t count = std::min<std::size_t>(with_loss.size(), 20);
  double mean = 0;
  for (std::size_t i = with_loss.size() - count; i < with_loss.size(); ++i)
    mean += (*with_loss[i])[Field::loss]->value / static_cast<double>(count);
  // A step's data may be easier than the average by chance: a token's surprise varies by about a nat.
  const double tokens = e.tokens_per_step ? e.tokens_per_step->low * static_cast<double>(count) : 1e3;
  const double chance = 0.02 + 5 / std::sqrt(std::max(1.0, tokens));
  out.note += "; the mean of the last " + std::to_string(count) + ", " + fixed(mean, 4);
  if (mean >= least - chance) {
    out.note += ", is not below the entropy of the data, " + fixed(least, 4) + ", by more than chance";
    return;
  }
  out.note = "mean of the last " + std::to_string(count) + ": " + fixed(mean, 4);
  contradict(out, mean, {least - chance, most_loss}, with_loss.back()->line);
  blame(out, "loss_below_floor", "below the entropy of the data: targets are in the input, or other data");
}

/// Loss scaling halves its factor with every skipped step: even from 2^32 it is soon through.
constexpr std::int64_t most_skips_in_a_row = 64;

}  // namespace

Result judge_first_loss(const Evidence& e) {
  if (!e.record.objective.empty()) return not_judged("a cross-entropy: the loss is of " + e.record.objective);
  const Printed* first = untrained_loss(e);
  if (!first) return not_judged("the first step");
  if (!std::isfinite(first->value)) return not_judged("a finite first loss");
  const auto &mean = e.record[Setting::expected_first_loss],
             &deviation = e.record[Setting::expected_first_loss_deviation];
  Result out = holding(1);
  Interval expected;
  if (mean && deviation) {
    expected = {mean->low - 5 * deviation->high, mean->high + 5 * deviation->high};
    out.note = "as the trainer expected it, 5 standard deviations";
  } else if (const auto size = vocabulary(e)) {
    const double level = std::log(*size);
    expected = {level - below, level + above};
    if (e.model && untrainable_feature(*e.model).empty()) {
      // The largest mean excess of usual initialisations is ours (spec/model/initial_loss.md).
      const double T = static_cast<double>(std::max<std::int64_t>(1, e.model->context));
      const double ours = expected_initial_loss(*e.model, static_cast<std::int64_t>(T)).mean;
      expected.high = std::max(expected.high, ours + 1);
    }
    out.note = "log V = " + fixed(level, 3) + ", and what usual initialisations add";
  } else {
    return not_judged("vocabulary");
  }
  out.printed = first->value;
  out.recomputed = expected;
  const bool from_scratch = e.record.weights == "new" || (mean && deviation);
  if (first->high < expected.low && !from_scratch) {
    out = not_judged("whether its weights were new: the first loss, " + fixed(first->value, 4) +
                     ", is that of a trained model (fine-tuning, a resume), or divided once too often");
    out.printed = first->value;
    out.recomputed = expected;
    return out;
  }
  if (first->high < expected.low || first->low > expected.high) {
    contradict(out, first->value, expected, first->line ? first->line : e.steps.front()->line);
    blame_scale(out, e, first->value, expected);
  }
  return out;
}

namespace {

/// Steps at the end of the log that its trainer left out because their loss was no number, and what its
/// summary makes of such losses.
void judge_end(Result& out, const Evidence& e) {
  std::size_t begin = e.steps.size();
  for (; begin > 0 && !(*e.steps[begin - 1])[Field::loss]; --begin) {
  }
  for (std::size_t i = begin; i < e.steps.size(); ++i) {
    const auto& left_out = (*e.steps[i])[Field::not_finite];
    if (!left_out || !(left_out->value > 0)) continue;
    ++out.judged;
    contradict(out, std::nan(""), {0, 1e308}, e.steps[i]->line);
    const auto& number = (*e.steps[i])[Field::step];
    blame(out, "loss_not_finite",
          "the log ends in steps whose loss was no number" +
              (number ? ", from step " + shown(number->value, Unit::steps) + " on" : std::string()) +
              ": the run diverged");
  }
  for (const Setting setting : {Setting::final_loss, Setting::average_loss}) {
    const auto& loss = e.record[setting];
    if (!loss) continue;
    ++out.judged;
    if (std::isfinite(loss->value)) continue;
    contradict(out, loss->value, {0, 1e308}, loss->line);
    blame(out, "loss_not_finite", "the loss of the summary is no number: some step's was none");
  }
}

/// Every line counts the skipped steps, and there are none.
bool counts_no_skip(const Evidence& e) {
  return std::all_of(e.steps.begin(), e.steps.end(), [](const Step* step) {
    const auto& skipped = (*step)[Field::skipped];
    return skipped && skipped->value == 0;
  });
}

/// "step 7"; of one that is printed without its number, "the step of line 9".
std::string name_of(const Step& step) {
  if (const auto& number = step[Field::step]) return "step " + shown(number->value, Unit::steps);
  return step.line > 0 ? "the step of line " + std::to_string(step.line) : "one of the steps";
}

}  // namespace

Result judge_loss_finite(const Evidence& e) {
  Result out = holding(0);
  const std::size_t last = last_finite(e);
  const bool scaled = e.record.dtype.empty() || computing_precision(e.record.dtype) == Precision::fp16;
  std::int64_t skipped = 0, in_a_row = 0, first_skipped = 0;
  bool endless = false, loss_ends = false, losses_are_finite = true;
  const Step* first_wrong = nullptr;
  for (std::size_t i = 0; i < e.steps.size(); ++i) {
    const auto &loss = (*e.steps[i])[Field::loss], &norm = (*e.steps[i])[Field::gradient_norm];
    out.judged += loss.has_value() + norm.has_value();
    if (loss && out.verdict != Verdict::contradicts) out.printed = loss->value;
    const auto fails = [&](const Printed& number) {
      if (out.verdict != Verdict::contradicts) first_wrong = e.steps[i];
      contradict(out, number.value, {0, 1e308}, number.line ? number.line : e.steps[i]->line);
    };
    if (loss && !std::isfinite(loss->value)) {
      fails(*loss);
      losses_are_finite = false;
      loss_ends = loss_ends || i > last;
    }
    if (!norm) continue;
    if (std::isfinite(norm->value)) {
      in_a_row = 0;
      continue;
    }
    // Losses go on: the trainer left the update out. At the end only fp16's loss scaling is known to.
    const bool goes_on = (!loss || std::isfinite(loss->value)) && (i < last || (i == last && scaled));
    endless = endless || ++in_a_row > most_skips_in_a_row;
    if (goes_on && !endless) {
      if (skipped++ == 0) first_skipped = norm->line ? norm->line : e.steps[i]->line;
    } else {
      fails(*norm);
    }
  }
  if (skipped > 0)
    out.note = std::to_string(skipped) + (skipped == 1 ? " step" : " steps") +
               " with a gradient that is no number, the first in line " + std::to_string(first_skipped) +
               ": left out, as with loss scaling, for the losses go on";
  if (out.verdict != Verdict::contradicts) {
    judge_end(out, e);
    if (std::none_of(e.steps.begin(), e.steps.end(),
                     [](const Step* s) { return (*s)[Field::loss].has_value(); })) {
      out.unprinted = true;
      if (out.note.empty()) out.note = "gradient norms: no step's loss is printed";
    }
    return out.judged == 0 ? not_judged("loss") : out;
  }
  const std::string step = name_of(*first_wrong);
  if (endless)
    blame(out, "gradient_not_finite", "no step of so many in a row was updated");
  else if (losses_are_finite)
    blame(out, "gradient_not_finite",
          counts_no_skip(e)
              ? "gradients overflowed, and the log counts no step as skipped: its update was done with them"
              : "gradients overflowed; a step that loss scaling skips does no harm, any other ends the "
                "training");
  else if (loss_ends || last == 0)
    blame(out, "loss_not_finite", "the run diverged at " + step + "; no later step of it trains a model");
  else
    blame(out, "loss_not_finite",
          "no loss: " + step + " was left out or its line is damaged, for later losses are finite");
  return out;
}

Result judge_loss_possible(const Evidence& e) {
  if (!e.record.objective.empty()) return not_judged("a cross-entropy: the loss is of " + e.record.objective);
  Result out = holding(0);
  const Interval possible = {least_loss, most_loss};
  std::vector<const Step*> with_loss;
  bool above = false;
  for (const Step* step : e.steps) {
    const auto& loss = (*step)[Field::loss];
    if (!loss || !std::isfinite(loss->value)) continue;
    with_loss.push_back(step);
    ++out.judged;
    const bool below = loss->high < least_loss || loss->value == 0, beyond = loss->low > most_loss;
    if (below || beyond) {
      above = above || (beyond && out.verdict != Verdict::contradicts);
      contradict(out, loss->value, possible, loss->line ? loss->line : step->line);
    } else if (out.verdict != Verdict::contradicts && (out.judged == 1 || loss->value > out.printed)) {
      out.printed = loss->value;  // the highest stands for all
    }
  }
  if (out.judged == 0) return not_judged("loss");
  if (out.verdict == Verdict::contradicts) {
    if (above)
      blame(out, "loss_too_large",
            "no mean over tokens: a sum over tokens or micro-batches, another unit, or a run that diverged "
            "beyond use");
    else if (out.printed < 0)
      blame(out, "loss_negative",
            "a cross-entropy is never negative: an objective, a difference, or an overflow");
    else
      blame(out, "loss_collapsed", "targets are in the input, or token ids overflowed");
    return out;
  }
  out.recomputed = possible;
  out.note = "the highest of " + std::to_string(out.judged);
  if (const auto size = vocabulary(e); size && out.printed > std::log(*size) + above_uniform)
    out.note += "; far worse than guessing, log V = " + fixed(std::log(*size), 3) + ": it diverged there";
  const auto& floor = e.record[Setting::loss_floor];
  if (floor) judge_floor(out, e, with_loss, floor->low);
  return out;
}

}  // namespace assay::spec::audit
