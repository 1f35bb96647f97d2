// The loss of the first step.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "spec/audit/groups.hpp"
#include "spec/model/initial_loss.hpp"
#include "spec/model/model_spec.hpp"
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
/// Taken where the log does not say: a batch of one short sequence. [tokens]
constexpr double shortest = 256;
/// Of all targets, so many may be one token: nothing in a log says what was read. Chosen: half of them, for
/// of code that tells every blank apart, as GPT-2's tokenizer does, a third and more are that blank. [share]
constexpr double commonest = 0.5;

/// Taken where the log does not say: the width of the widest model that is known here (Llama 3.1 405B's, of
/// 16,384), and a quarter more, chosen, as the widest dense ones that were published are. [dimensions]
double widest() {
  static const double width = [] {
    std::int64_t most = 0;
    for (const std::string& name : model_names()) most = std::max(most, find_model(name).width);
    return 1.25 * static_cast<double>(most);
  }();
  return width;
}

/// Probability that two tokens of the batch are the same, at the most that is allowed for: `commonest` of
/// them are one, the others words whose frequencies fall as 1 / rank (Zipf), which are the same with the sum
/// of 1/k^2, pi^2/6 at most, over the square of that of 1/k, log V + 0.577; and each token is itself. Words
/// alone make 0.013 of 50,257, which half of one token makes 0.253.
double collision(double vocab, double tokens) {
  const double ranks = std::log(vocab) + std::numbers::egamma,
               words = std::numbers::pi * std::numbers::pi / 6 / (ranks * ranks);
  return std::min(1.0, commonest * commonest + (1 - commonest) * (1 - commonest) * words + 1 / tokens);
}

/// First losses of new weights (spec/model/initial_loss.md): logits of variance S, of hidden states that are
/// all alike at worst, make a mean of log V + S / 2 and a standard deviation of sqrt(S c), c the collision
/// probability of the targets. `deviations` of it lie lowest below log V at sqrt(S) = deviations sqrt(c), or
/// at the largest S, where that is less. A tied head also knows its input: where that is the target, with a
/// probability of c at most, its logit takes log V more away at most, for a larger one raises the sum of all;
/// and where half the targets repeat their input, in rows of blanks, it may be log V / 2: at GPT-2's usual
/// weights it is about 0.7 (12 layers of 768, one draw of them).
/// `mean`: of the trainer's model, where that is known. [nats]
Interval losses_of_new_weights(double vocab, double width, double tokens, bool tied, double mean) {
  const double c = collision(vocab, tokens), level = std::log(vocab);
  const double S = std::max(usual_variance, usual_std * usual_std * width);
  const double lowest = std::min(S, deviations * deviations * c);
  return {level + lowest / 2 - deviations * std::sqrt(lowest * c) - (tied ? c * level : 0),
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

/// What may have been done to a mean loss, as factors: the one that leaves it nearest to `usual` first.
void blame_scale(Result& out, const Evidence& e, double printed, Interval expected, double usual) {
  const double passes = e.accumulation ? e.accumulation->low : 1, ranks = e.ranks.value_or(1);
  struct Scale {
    double factor;
    const char *id, *text;
  };
  std::vector<Scale> scales = {
      {passes, "loss_summed_over_passes", "the sum over micro-batches, not their mean"},
      {1 / passes, "loss_divided_twice", "divided by the accumulation once too often"},
      {ranks, "loss_summed_over_ranks", "the sum over ranks, not their mean"},
      {1 / ranks, "loss_divided_by_ranks", "divided by the number of ranks once too often"},
      {1 / std::numbers::ln2, "loss_in_bits", "bits per token, not nats"}};
  std::erase_if(scales, [&](const Scale& scale) {
    return !(scale.factor > 0) || scale.factor == 1 || printed < expected.low * scale.factor ||
           printed > expected.high * scale.factor;
  });
  const auto off = [&](const Scale& scale) { return std::abs(printed / scale.factor - usual); };
  std::stable_sort(scales.begin(), scales.end(),
                   [&](const Scale& a, const Scale& b) { return off(a) < off(b); });
  for (const Scale& scale : scales) blame(out, scale.id, scale.text);
  if (!out.causes.empty()) return;
  // How many passes or ranks there are is not said: as many as bring it nearest to a mean may have been
  // summed.
  const double n = std::round(printed / usual);
  const bool passes_known = e.accumulation && !e.accumulation_is_configured;
  if (n >= 2 && (!passes_known || !e.ranks) && expected.holds(printed / n))
    blame(out, passes_known ? "loss_summed_over_ranks" : "loss_summed_over_passes",
          "the sum over about " + fixed(n, 0) + (passes_known ? "" : " micro-batches or") +
              " ranks, whose number the log does not say, not their mean");
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
  double usual = 0;
  if (mean && deviation) {
    usual = mean->value;
    expected = {mean->low - deviations * deviation->high, mean->high + deviations * deviation->high};
    out.note = "as the trainer expected it, 5 standard deviations";
  } else if (const auto size = vocabulary_size(e)) {
    const double level = std::log(*size);
    const auto& stated = e.record[Setting::width];
    const double width = e.model          ? static_cast<double>(e.model->width)
                         : usable(stated) ? stated->value
                                          : widest();
    const double tokens = e.tokens_per_step   ? e.tokens_per_step->low
                          : e.sequence_length ? e.sequence_length->low
                                              : shortest;
    usual = level + (e.model || usable(stated) ? usual_std * usual_std * width / 2 : 0);
    double ours = 0;  // a tied head may add more
    if (e.model && without_initial_loss(*e.model).empty())
      ours = expected_initial_loss(*e.model, std::max<std::int64_t>(1, e.model->context)).mean;
    expected = losses_of_new_weights(*size, width, std::max(1.0, tokens),
                                     !e.model || e.model->tied_embeddings, ours);
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
    blame_scale(out, e, first->value, expected, usual);
  }
  return out;
}

}  // namespace assay::spec::audit
