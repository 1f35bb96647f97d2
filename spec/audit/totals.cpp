// Totals that a summary prints, and what it says of the run's end.
#include <algorithm>
#include <cmath>

#include "spec/audit/groups.hpp"
#include "spec/audit/loss_scatter.hpp"
#include "spec/audit/relations.hpp"
#include "spec/audit/summary_steps.hpp"
#include "spec/audit/unlogged_steps.hpp"
#include "spec/text/quantity.hpp"

namespace assay::spec::audit {

Result judge_total_tokens(const Evidence& e) {
  const auto& printed = e.record[Setting::total_tokens];
  if (!usable(printed)) return not_judged("total tokens");
  const std::vector<const Step*> done = covered(e, *printed);
  if (!e.tokens_per_step || done.empty() || !(*done.back())[Field::step] || !(*done.front())[Field::step])
    return not_judged(e.tokens_per_step ? "step numbers" : "tokens per step");
  const double last = (*done.back())[Field::step]->value, first = (*done.front())[Field::step]->value;
  Result out = holding(1);
  out.printed = printed->value;
  const Interval shown = wide(*printed);
  // Steps may be numbered from 0 or 1, and a log may hold only what came after a resume.
  std::vector<double> counts = {last, last + 1, last - first + 1};
  // Steps after the last one logged.
  if (!every_step_is_logged(e, done))
    for (const Setting end : {Setting::final_step, Setting::max_steps})
      if (e.record[end]) counts.insert(counts.end(), {e.record[end]->value, e.record[end]->value + 1});
  for (const double steps : counts) {
    const Interval expected = exact_interval(steps) * *e.tokens_per_step;
    if (!expected.meets(shown)) continue;
    out.recomputed = expected;
    return out;
  }
  const Interval most = exact_interval(last) * *e.tokens_per_step;
  contradict(out, printed->value, most, printed->line);
  const auto fits = [&](double factor) {
    const auto steps = std::find_if(counts.begin(), counts.end(), [&](double n) {
      return (exact_interval(n * factor) * *e.tokens_per_step).meets(shown);
    });
    if (steps == counts.end()) return false;
    out.recomputed = exact_interval(*steps) * *e.tokens_per_step;
    return true;
  };
  const double ranks = e.ranks.value_or(1), passes = e.accumulation ? e.accumulation->low : 1;
  if (ranks > 1 && fits(1 / ranks)) blame(out, "total_of_one_rank", "one rank's tokens");
  if (passes > 1 && fits(1 / passes))
    blame(out, "total_of_micro_batches", "one micro-batch per step counted");
  if (out.causes.empty()) blame(out, "total_of_other_steps", "tokens of other steps than those logged");
  return out;
}

/// Where the summary's tokens are those of its steps, they speak against every reading in which a step has
/// other tokens; where they are one pass' or one rank's, for those in which it has them. Of other tokens
/// judge_total_tokens says so, and they are evidence of nothing.
void compare_summary(const Evidence& e, Comparisons& out) {
  const Result total = judge_total_tokens(e);
  if (total.verdict == Verdict::cannot_be_judged) return;
  if (total.verdict == Verdict::contradicts &&
      std::any_of(total.causes.begin(), total.causes.end(),
                  [](const Cause& cause) { return cause.id == "total_of_other_steps"; }))
    return;
  add_sample(at(out, Relation::summary_tokens), *e.record[Setting::total_tokens], total.recomputed);
}

Result judge_total_seconds(const Evidence& e) {
  const auto& printed = e.record[Setting::total_seconds];
  if (!usable(printed)) return not_judged("total time");
  const std::vector<const Step*> steps = covered(e, *printed);
  std::vector<Interval> logged = intervals_of(steps, Field::seconds);
  if (logged.size() < 2) return not_judged("step times");
  // The first one holds compilation. A mean stands for its steps, its own time for a step alone.
  const auto others = unlogged_times({logged.begin() + 1, logged.end()});
  double sum = 0, least = 0;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const auto& seconds = (*steps[i])[Field::seconds];
    if (!usable(seconds)) continue;
    double gap = 1;
    if (i > 0)
      if (const auto& a = (*steps[i - 1])[Field::step], &b = (*steps[i])[Field::step]; a && b)
        gap = std::max(0.0, b->value - a->value);
    const Interval shown = wide(*seconds);
    sum += gap * seconds->value;
    if (e.averaged(Field::seconds) || gap < 1)
      least += gap * shown.low;
    else
      least += shown.low + (gap - 1) * others.value_or(told_by_one(shown)).low;
  }
  Result out = holding(1);
  out.printed = printed->value;
  out.recomputed = {about(exact_interval(least)).low, 1e300};
  out.note = "the steps took " + duration(sum);
  if (wide(*printed).high < out.recomputed.low) {
    contradict(out, printed->value, out.recomputed, printed->line);
    blame(out, "total_time_too_short",
          e.stretches.size() > 1
              ? "less than its steps took, those included that a restart did again: the time of "
                "some starts alone, another unit, or other steps"
              : "less than its steps took: another unit, another start, or other steps");
  }
  return out;
}

/// Source: huggingface/transformers modeling_utils.py, floating_point_ops: 6 x input_ids.numel() x
/// num_parameters(exclude_embeddings=True), which leaves out the weights of every embedding, and with them a
/// head that is tied to one; trainer.py sums it over the ranks.
Result judge_total_flops(const Evidence& e) {
  const auto& printed = e.record[Setting::total_flops];
  if (!usable(printed)) return not_judged("total FLOPs");
  if (!e.model) return not_judged("model");
  const ModelSpec& m = *e.model;
  const double width = static_cast<double>(m.width);
  double parameters = parameter_count(m).to_double() - static_cast<double>(m.vocab) * width;
  if (m.positions == Positions::learned) parameters -= static_cast<double>(m.context) * width;
  const std::vector<const Step*> steps = covered(e, *printed);
  const auto last = [&](Field field) -> const Printed* {
    return !steps.empty() && usable((*steps.back())[field]) ? &*(*steps.back())[field] : nullptr;
  };
  const Printed *seen = last(Field::tokens_total), *step = last(Field::step);
  const auto& planned = e.record[Setting::max_steps];
  const double done = std::max(planned ? planned->value : 0, step ? step->value : 0);
  const bool bounded = e.tokens_per_step && done > 0;
  if (!seen && !bounded) return not_judged("tokens seen, or tokens per step");
  Result out = holding(1);
  out.printed = printed->value;
  const Interval each = exact_interval(6 * parameters);
  out.recomputed = {seen ? (each * wide(*seen)).low * 0.999 : 0,
                    bounded ? (each * exact_interval(done) * *e.tokens_per_step).high * 1.1 : 1e300};
  if (out.recomputed.meets(wide(*printed))) return out;
  const Interval right = out.recomputed;
  contradict(out, printed->value, right, printed->line);
  const double ranks = e.ranks.value_or(1);
  const bool share = ranks > 1 && right.meets(wide(*printed) * exact_interval(ranks));
  if (printed->value > right.high)
    blame(out, "total_flops_too_large", "other tokens, other parameters, or attention counted too");
  else if (share)
    blame(out, "total_flops_of_one_rank", "one rank's: its tokens alone, or its shard of the parameters");
  else
    blame(out, "total_flops_too_small", "other tokens or other parameters");
  return out;
}

namespace {

/// How far the loss of a step that is not logged may lie from the last line's: a difference of two losses
/// has 1.5 times the scatter as its standard deviation, of which these are four, and one line's way on.
/// Nothing of too few lines. [nats]
std::optional<double> loss_of_an_unlogged_step(const Evidence& e) {
  constexpr std::size_t lines = 100, fewest = 8;
  constexpr double deviations = 4 * 1.5;
  const auto course =
      loss_course(e, e.steps.size() - std::min(e.steps.size(), lines), e.steps.size(), fewest);
  return course ? std::optional(deviations * course->scatter + std::abs(course->trend)) : std::nullopt;
}

}  // namespace

Result judge_final(const Evidence& e) {
  const auto &loss = e.record[Setting::final_loss], &step = e.record[Setting::final_step];
  if (!loss && !step) return not_judged("a summary");
  Result out = holding(0);
  if (loss && std::isfinite(loss->value)) {
    const std::vector<const Step*> steps = covered(e, *loss);
    const std::vector<double> losses = values_of(steps, Field::loss, false);
    bool found = losses.empty();
    double sum = 0, expected = losses.empty() ? 0 : losses.back();
    // Of as many as the log says, where it does.
    const auto& said = e.record[Setting::final_loss_steps];
    const bool known = said && said->value <= static_cast<double>(losses.size());
    for (std::size_t last = 1; last <= losses.size() && !found; ++last) {
      sum += losses[losses.size() - last];
      if (known && static_cast<double>(last) != said->value) continue;
      const double average = sum / static_cast<double>(last);
      const Interval range = wide(*loss);
      if (known) expected = average;
      found = range.low * (1 - 1e-6) <= average && average <= range.high * (1 + 1e-6);
      if (found && last > 1) out.note = "final loss is the mean of the last " + std::to_string(last);
    }
    if (!losses.empty()) ++out.judged;
    out.printed = loss->value;
    if (!losses.empty()) out.recomputed = exact_interval(expected);
    if (!found && e.record.unread_lines > 0) return not_judged("the losses on lines that could not be read");
    if (!found && !every_step_is_logged(e, steps)) {
      const auto apart = loss_of_an_unlogged_step(e);
      if (!apart) return not_judged("the losses of the last steps");
      found = std::abs(loss->value - losses.back()) <= *apart;
    }
    if (!found) {
      contradict(out, loss->value, exact_interval(expected), loss->line);
      blame(out, "final_loss_other",
            known && said->value > 1 ? "not the mean of the last " + shown(said->value, Unit::none) + " steps"
                                     : "the loss of other steps than the last");
    }
  }
  const std::vector<const Step*> before = step ? covered(e, *step) : std::vector<const Step*>();
  if (!before.empty() && (*before.back())[Field::step]) {
    ++out.judged;
    const double last = (*before.back())[Field::step]->value;
    if (!loss) out.printed = step->value, out.recomputed = exact_interval(last);
    // Steps after the last logged one are not seen, but that our own record has every step; earlier ends are
    // impossible.
    if (step->value + 1 < last || (e.trainer.logs_every_step && step->value < last)) {
      contradict(out, step->value, {last, 1e300}, step->line);
      blame(out, "final_step_earlier", "the log goes on after its final step");
    } else if (e.trainer.logs_every_step && step->value > last) {
      contradict(out, step->value, exact_interval(last), step->line);
      blame(out, "final_step_later", "steps are said to be done that have no line");
    }
  }
  if (out.judged == 0) return not_judged("steps");
  return out;
}

}  // namespace assay::spec::audit
