// The loss of the first step.
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

}  // namespace assay::spec::audit
