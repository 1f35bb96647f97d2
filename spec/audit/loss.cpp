#include <algorithm>
#include <cmath>
#include <numbers>

#include "spec/audit/groups.hpp"
#include "spec/model/initial_loss.hpp"
#include "spec/model/trainable.hpp"
#include "spec/text/quantity.hpp"

namespace assay::spec::audit {

std::optional<double> vocabulary_size(const Evidence& e) {
  if (const auto& printed = e.record[Setting::vocab]; printed && printed->value > 1) return printed->value;
  if (e.model) return static_cast<double>(e.model->vocab);
  return std::nullopt;
}

namespace {

/// As of what the trainer expected: so far chance may move a first loss. [standard deviations]
constexpr double deviations = 5;
/// What initial weights are drawn with: GPT-2's 0.02 in most trainers, else one over the root of the width,
/// at which logits have a variance of 1.
constexpr double usual_std = 0.02, usual_variance = 1;
/// Taken where the log does not say: the width of Llama's 70B, the widest that this project knows to begin at
/// 0.02; a batch of one short sequence. [dimensions, tokens]
constexpr double widest = 8192, shortest = 256;

/// Probability that two tokens of the batch are the same, of words whose frequencies fall as 1 / rank (Zipf):
/// the sum of 1/k^2, pi^2/6 at most, over the square of that of 1/k, log V + 0.577; and each token is itself.
double collision(double vocab, double tokens) {
  const double ranks = std::log(vocab) + std::numbers::egamma;
  return std::min(1.0, std::numbers::pi * std::numbers::pi / 6 / (ranks * ranks) + 1 / tokens);
}

/// First losses of new weights (spec/model/initial_loss.md): logits of variance S, of hidden states that are
/// all alike at worst, make a mean of log V + S / 2 and a standard deviation of sqrt(S c), c the collision
/// probability of the targets. `deviations` of it lie lowest below log V at sqrt(S) = deviations sqrt(c):
/// deviations^2 c / 2, whatever S is. A tied head also knows its input: where that is the target, with a
/// probability of c at most, its logit takes log V more away at most, for a larger one raises the sum of all.
/// `mean`: of the trainer's model, where that is known. [nats]
Interval losses_of_new_weights(double vocab, double width, double tokens, double mean) {
  const double c = collision(vocab, tokens), level = std::log(vocab);
  const double S = std::max(usual_variance, usual_std * usual_std * width);
  return {level - c * (deviations * deviations / 2 + level),
          std::max(mean, level + S / 2) + deviations * std::sqrt(S * c)};
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
    expected = {mean->low - deviations * deviation->high, mean->high + deviations * deviation->high};
    out.note = "as the trainer expected it, 5 standard deviations";
  } else if (const auto size = vocabulary_size(e)) {
    const double level = std::log(*size);
    const auto& stated = e.record[Setting::width];
    const double width = e.model          ? static_cast<double>(e.model->width)
                         : usable(stated) ? stated->value
                                          : widest;
    const double tokens = e.tokens_per_step   ? e.tokens_per_step->low
                          : e.sequence_length ? e.sequence_length->low
                                              : shortest;
    double ours = 0;  // a tied head may add more
    if (e.model && untrainable_feature(*e.model).empty())
      ours = expected_initial_loss(*e.model, std::max<std::int64_t>(1, e.model->context)).mean;
    expected = losses_of_new_weights(*size, width, std::max(1.0, tokens), ours);
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

}  // namespace assay::spec::audit
