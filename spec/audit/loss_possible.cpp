// Whether losses are those that some training reaches.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "spec/audit/filtered_losses.hpp"
#include "spec/audit/groups.hpp"
#include "spec/audit/loss_scatter.hpp"
#include "spec/text/quantity.hpp"

namespace assay::spec::audit {
namespace {

/// Below, a loss is reported. Chosen, not derived: nothing but the entropy of its data bounds a cross-entropy
/// from below, and examples that are seen often enough are known by heart. One pass over text stays orders
/// above; this is the last digit of the four that most trainers print. [nats]
constexpr double least_loss = 1e-4;
/// A fall from one line to the next to nothing: beyond the trend of the lines before by that much at least,
/// and by as many times their scatter. Both chosen: ten are 6.7 standard deviations of a difference where
/// losses are normal, and a loss that comes down over many lines is below a nat before it is nothing.
/// [nats; 1]
constexpr double least_fall = 1, far_fall = 10;
constexpr std::size_t fewest_before_fall = 2;  ///< differences
/// log V is no bound: a diverged model is worse than one that guesses. Logits bound its loss: the largest and
/// the smallest differ by at most 2 |h| |w|. At first the final norm makes |h| = sqrt(D) and a row of the
/// head is some 0.02 sqrt(D) long, which is 0.04 D: 164 nats at D = 4,096. Training makes both longer: six
/// times leaves 1,000. [nats]
constexpr double most_loss = 1000;
constexpr double above_uniform = 5;  ///< more than initial weights add

/// Printed as 0, or all that it may stand for is below what is reported. Not negative.
bool is_nothing(const Printed& loss) { return loss.value == 0 || (loss.high < least_loss && loss.high >= 0); }

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

/// The weights are new as the log says, and the line is of the step before any update.
bool of_new_weights(const Evidence& e, const Step& step) {
  const bool from_scratch = e.record.weights == "new" || (e.record[Setting::expected_first_loss] &&
                                                          e.record[Setting::expected_first_loss_deviation]);
  return from_scratch && &step == e.steps.front() && step[Field::step] && step[Field::step]->value <= 1;
}

/// The line of `e` from which on every loss is nothing, where the one before was far from it; the number of
/// lines where there is none. `least`: what a usual fall would have left of the loss there.
std::size_t collapse(const Evidence& e, double& least) {
  std::size_t first = e.steps.size();
  for (std::size_t i = e.steps.size(); i > 0; --i) {
    const auto& loss = (*e.steps[i - 1])[Field::loss];
    if (!loss || !std::isfinite(loss->value)) continue;
    if (is_nothing(*loss)) {
      first = i - 1;
      continue;
    }
    if (first == e.steps.size()) break;
    const std::optional<LossCourse> course = loss_course(e, 0, i, fewest_before_fall);
    if (!course) break;
    least = loss->low + std::min(course->trend, 0.0) - std::max(least_fall, far_fall * course->scatter);
    if ((*e.steps[first])[Field::loss]->high < least) return first;
    break;
  }
  return e.steps.size();
}

}  // namespace

Result judge_loss_possible(const Evidence& e) {
  if (!e.record.objective.empty()) return not_judged("a cross-entropy: the loss is of " + e.record.objective);
  Result out = holding(0);
  std::vector<const Step*> with_loss;
  bool above = false, negative = false;
  std::int64_t low = 0;
  double least = 0;
  const std::size_t collapsed = collapse(e, least), filtered = first_filtered_loss(e);
  for (std::size_t i = 0; i < filtered; ++i) {
    const Step* step = e.steps[i];
    const auto& loss = (*step)[Field::loss];
    if (!loss || !std::isfinite(loss->value)) continue;
    with_loss.push_back(step);
    ++out.judged;
    const bool first = out.verdict != Verdict::contradicts, below = loss->high < 0;
    const std::int64_t line = loss->line ? loss->line : step->line;
    if (below || loss->low > most_loss) {
      above = above || (!below && first), negative = negative || (below && first);
      contradict(out, loss->value, {0, most_loss}, line);
    } else if (i >= collapsed) {
      contradict(out, loss->value, {least, most_loss}, line);
    } else if (is_nothing(*loss) && loss->high < std::numbers::ln2 && of_new_weights(e, *step)) {
      contradict(out, loss->value, {std::numbers::ln2, most_loss}, line);
    } else {
      low += loss->high < least_loss;
      if (first && (out.judged == 1 || loss->value > out.printed)) out.printed = loss->value;  // the highest
    }
  }
  if (out.judged == 0)
    return not_judged(filtered < e.steps.size() ? "a loss that is a number (loss_finite)" : "loss");
  if (out.verdict == Verdict::contradicts) {
    if (above)
      blame(out, "loss_too_large",
            "no mean over tokens: a sum over tokens or micro-batches, another unit, or a run that diverged "
            "beyond use");
    else if (negative)
      blame(out, "loss_negative",
            "a cross-entropy is never negative: an objective, a difference, or an overflow");
    else
      blame(out, "loss_collapsed",
            "nothing at once, and not by and by as where few examples are known by heart: targets are in the "
            "input, token ids overflowed, the loss was not computed, or it is no cross-entropy");
    return out;
  }
  const std::string may_be =
      fixed(least_loss, 4) +
      " nats: examples known by heart, a loss that is no cross-entropy, or targets in the input";
  if (low == out.judged) return not_judged("whether it is a cross-entropy: every loss is below " + may_be);
  out.recomputed = {low > 0 ? 0 : least_loss, most_loss};
  out.note = "the highest of " + std::to_string(out.judged);
  if (low > 0) out.note += "; " + std::to_string(low) + " below " + may_be;
  if (const auto size = vocabulary_size(e); size && out.printed > std::log(*size) + above_uniform)
    out.note += "; far worse than guessing, log V = " + fixed(std::log(*size), 3) + ": it diverged there";
  const auto& floor = e.record[Setting::loss_floor];
  if (floor) judge_floor(out, e, with_loss, floor->low);
  return out;
}

}  // namespace assay::spec::audit
