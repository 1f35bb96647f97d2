#include <algorithm>
#include <cmath>
#include <functional>

#include "spec/audit/groups.hpp"
#include "spec/audit/relations.hpp"
#include "spec/text/quantity.hpp"

namespace assay::spec::audit {
namespace {

/// The steps that a summary speaks of: those before it, since the program's last start before it.
std::vector<const Step*> covered(const Evidence& e, const Printed& summary) {
  std::int64_t begin = 0;
  for (const Restart& restart : e.record.restarts)
    if (summary.line == 0 || restart.line < summary.line) begin = std::max(begin, restart.line);
  std::vector<const Step*> out;
  for (const Step* step : e.steps)
    if (step->line == 0 || summary.line == 0 || (step->line >= begin && step->line < summary.line))
      out.push_back(step);
  // A summary may stand before its steps, as in a document's head.
  return out.empty() ? e.steps : out;
}

/// Values of one field, first step first.
std::vector<double> values_of(const std::vector<const Step*>& steps, Field field, bool shares) {
  std::vector<double> out;
  for (const Step* step : steps)
    if (const auto& p = (*step)[field]; p && std::isfinite(p->value) && !(shares && not_measured(*p)))
      out.push_back(p->value);
  return out;
}

double mean(const std::vector<double>& values, std::size_t from) {
  double sum = 0;
  for (std::size_t i = from; i < values.size(); ++i) sum += values[i];
  return sum / static_cast<double>(values.size() - from);
}

/// By how much rounding may move the mean of these values: at most by the widest rounding among them.
double rounding(const std::vector<const Step*>& steps, Field field) {
  double most = 0;
  for (const Step* step : steps)
    if (const auto& p = (*step)[field]; p && std::isfinite(p->value))
      most = std::max(most, p->high - p->value);
  return std::isfinite(most) ? most : 0;
}

/// With room for the last bits of sums and quotients.
Interval about(Interval numbers) { return {numbers.low * (1 - 1e-9), numbers.high * (1 + 1e-9)}; }

bool every_step_is_logged(const Evidence& e, const std::vector<const Step*>& steps) {
  if (steps.empty() || e.record.steps_seen > static_cast<std::int64_t>(e.record.steps.size())) return false;
  // A piece of a log: it begins late without a restart, or ends before the run did.
  const auto &first = (*steps.front())[Field::step], &last = (*steps.back())[Field::step];
  if (first && first->value > 1 && e.record.restarts.empty()) return false;
  if (const auto& planned = e.record[Setting::max_steps]; planned && last && last->value + 1 < planned->value)
    return false;
  for (std::size_t i = 1; i < steps.size(); ++i) {
    const auto &a = (*steps[i - 1])[Field::step], &b = (*steps[i])[Field::step];
    if (!a || !b || b->value - a->value > 1) return false;
  }
  return true;
}

/// A printed mean against the means that trainers form of the logged values.
Result judge_mean(const Evidence& e, Setting setting, Field field, const char* name) {
  const auto& printed = e.record[setting];
  if (!printed) return not_judged(std::string("average ") + name);
  const std::vector<const Step*> steps = covered(e, *printed);
  const std::vector<double> values = values_of(steps, field, field == Field::mfu);
  if (values.size() < 2) return not_judged(std::string("steps with ") + name);
  Result out = holding(1);
  out.printed = printed->value;
  const Interval shown = wide(*printed);
  const double slack = rounding(steps, field);
  const auto is = [&](double number) {
    return shown.low * (1 - 1e-6) <= number + slack && number - slack <= shown.high * (1 + 1e-6);
  };
  const double all = mean(values, 0), without_first = mean(values, 1);
  out.recomputed = exact_interval(all);
  if (is(all)) {
    out.note = "mean of the " + std::to_string(values.size()) + " logged";
    const bool outlier = std::abs(values.front() / without_first - 1) > 0.5 && values.size() < 1000;
    if (outlier)
      out.note += ", the first (compilation, warm-up) included; without it " +
                  (field == Field::mfu ? percent(without_first, 2) : fixed(without_first, 4));
    return out;
  }
  for (std::size_t skipped = 1; skipped <= std::min<std::size_t>(values.size() / 2, 200); ++skipped)
    if (is(mean(values, skipped))) {
      out.note = "mean of the logged without the first " + std::to_string(skipped);
      out.recomputed = exact_interval(mean(values, skipped));
      return out;
    }
  const auto [least, largest] = std::minmax_element(values.begin() + 1, values.end());
  if (!every_step_is_logged(e, steps) && shown.high >= *least * 0.95 &&
      shown.low <= std::max(*largest, all) * 1.05) {
    out.note = "within what the logged steps show; not every step is logged";
    out.recomputed = {*least * 0.95, std::max(*largest, all) * 1.05};
    return out;
  }
  // A rate's mean over time is total tokens over total time, the harmonic mean of equal steps.
  double inverse = 0;
  for (std::size_t i = 0; i < values.size(); ++i) inverse += 1 / values[i];
  const double harmonic = static_cast<double>(values.size()) / inverse;
  const double later = static_cast<double>(values.size() - 1) / (inverse - 1 / values.front());
  if (field != Field::seconds && (is(harmonic) || is(later))) {
    out.note = "mean over time";
    out.recomputed = exact_interval(is(harmonic) ? harmonic : later);
    return out;
  }
  contradict(out, printed->value, {std::min(all, without_first), std::max(all, without_first)},
             printed->line);
  if (is(values.back())) blame(out, "average_is_last", "the last step's, not a mean");
  if (is(*least) || is(*largest)) blame(out, "average_is_best", "the best or worst step's, not a mean");
  if (out.causes.empty()) blame(out, "average_of_other_steps", "a mean over other steps than those logged");
  return out;
}

}  // namespace

Result judge_average_seconds(const Evidence& e) {
  return judge_mean(e, Setting::average_seconds, Field::seconds, "step time");
}
Result judge_average_mfu(const Evidence& e) { return judge_mean(e, Setting::average_mfu, Field::mfu, "MFU"); }

Result judge_average_rate(const Evidence& e) {
  const auto& printed = e.record[Setting::average_tokens_per_second];
  const auto &tokens = e.record[Setting::total_tokens], &seconds = e.record[Setting::total_seconds];
  if (usable(printed) && usable(tokens) && usable(seconds)) {
    const Interval whole_run = wide(*tokens) / wide(*seconds);
    if (about(whole_run).meets(about(wide(*printed)))) {
      Result out = holding(1);
      out.printed = printed->value;
      out.recomputed = whole_run;
      out.note = "total tokens / total seconds";
      return out;
    }
  }
  return judge_mean(e, Setting::average_tokens_per_second, Field::tokens_per_second, "tokens/s");
}

namespace {

/// How many steps the total time may hold: up to the last logged, or planned; or those since a resume.
std::vector<double> steps_done(const Evidence& e, const Printed& summary) {
  std::vector<double> out;
  const std::vector<const Step*> done = covered(e, summary);
  if (!done.empty() && (*done.back())[Field::step]) {
    const double last = (*done.back())[Field::step]->value, first = (*done.front())[Field::step]->value;
    out = {last, last + 1, last - first, last - first + 1};
  }
  for (const Setting end : {Setting::final_step, Setting::max_steps})
    if (usable(e.record[end])) out.push_back(e.record[end]->value);
  return out;
}

/// A printed rate over the wall clock against `each` per step of any count of steps that it may run over.
Result judge_run_rate(const Evidence& e, const Printed& printed, Interval each, const char* what) {
  const auto& seconds = e.record[Setting::total_seconds];
  if (!usable(seconds)) return not_judged("total time");
  const std::vector<double> counts = steps_done(e, printed);
  if (counts.empty()) return not_judged("step numbers");
  Result out = holding(1);
  out.printed = printed.value;
  double usual = 0;
  for (const double steps : counts) {
    if (steps <= 0) continue;
    const Interval rate = exact_interval(steps) * each / wide(*seconds);
    // Trainers round to three digits behind the point, and may time a little more than they print.
    if (rate.low * 0.99 - 5e-4 <= wide(printed).high && wide(printed).low <= rate.high * 1.01 + 5e-4) {
      out.recomputed = rate;
      return out;
    }
    if (usual == 0) usual = rate.middle();
  }
  if (usual == 0) return not_judged("step numbers");
  contradict(out, printed.value, exact_interval(usual), printed.line);
  out.note = std::string(what) + " are not those of this time";
  blame(out, "average_of_other_time",
        std::string(what) + " over another time, or other steps, than the summary says");
  return out;
}

}  // namespace

Result judge_steps_rate(const Evidence& e) {
  const auto& printed = e.record[Setting::average_steps_per_second];
  if (!usable(printed)) return not_judged("steps per second of a summary");
  return judge_run_rate(e, *printed, exact_interval(1), "steps/s");
}

namespace {

/// Where no batch is stated, both rates make one: at least a sequence, and told.
Result judge_sequences_of_rates(const Evidence& e, const Printed& printed) {
  const auto& steps = e.record[Setting::average_steps_per_second];
  if (!usable(steps) || !(wide(*steps).low > 0)) return not_judged("sequences per step");
  const Interval each = wide(printed) / wide(*steps);
  Result out = holding(1);
  out.printed = printed.value;
  out.recomputed = {wide(*steps).low, 1e300};
  if (each.high < 1) {
    contradict(out, printed.value, {wide(*steps).low, 1e300}, printed.line);
    blame(out, "average_of_other_time",
          "less than one sequence per step: another unit, or steps that are none");
    return out;
  }
  const double least = std::ceil(each.low * (1 - 1e-9)), most = std::floor(each.high * (1 + 1e-9));
  out.note = "with the steps/s: " + shown(least, Unit::none) +
             (most > least ? " to " + shown(most, Unit::none) : std::string()) +
             (most == 1 ? " sequence" : " sequences") + " per step";
  if (e.micro && !(each.high < e.micro->low))
    out.note += ", of " + shown(e.micro->low, Unit::none) + " in one rank's pass";
  return out;
}

}  // namespace

Result judge_sequences_rate(const Evidence& e) {
  const auto& printed = e.record[Setting::average_sequences_per_second];
  if (!usable(printed)) return not_judged("sequences per second of a summary");
  auto each = e.of(Setting::sequences);
  if (!each && e.micro && e.accumulation && e.ranks)
    each = *e.micro * *e.accumulation * exact_interval(*e.ranks);
  if (!each) return judge_sequences_of_rates(e, *printed);
  return judge_run_rate(e, *printed, *each, "sequences/s");
}

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
    return std::any_of(counts.begin(), counts.end(), [&](double steps) {
      return (exact_interval(steps * factor) * *e.tokens_per_step).meets(shown);
    });
  };
  const double ranks = e.ranks.value_or(1), passes = e.accumulation ? e.accumulation->low : 1;
  if (ranks > 1 && fits(1 / ranks)) blame(out, "total_of_one_rank", "one rank's tokens");
  if (passes > 1 && fits(1 / passes))
    blame(out, "total_of_micro_batches", "one micro-batch per step counted");
  if (out.causes.empty()) blame(out, "total_of_other_steps", "tokens of other steps than those logged");
  return out;
}

/// Where the summary's tokens are those of its steps, they speak against every reading in which a step has
/// other tokens. Where they are not, judge_total_tokens says so, and they are evidence of nothing.
void compare_summary(const Evidence& e, Comparisons& out) {
  const Result total = judge_total_tokens(e);
  if (total.verdict == Verdict::holds)
    add_sample(at(out, Relation::summary_tokens), *e.record[Setting::total_tokens], total.recomputed);
}

Result judge_total_seconds(const Evidence& e) {
  const auto& printed = e.record[Setting::total_seconds];
  if (!usable(printed)) return not_judged("total time");
  const std::vector<const Step*> steps = covered(e, *printed);
  double sum = 0;
  std::int64_t counted = 0;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const auto& seconds = (*steps[i])[Field::seconds];
    if (!usable(seconds)) continue;
    double gap = 1;
    if (i > 0)
      if (const auto& a = (*steps[i - 1])[Field::step], &b = (*steps[i])[Field::step]; a && b)
        gap = std::max(0.0, b->value - a->value);
    sum += gap * seconds->value;
    ++counted;
  }
  if (counted < 2) return not_judged("step times");
  Result out = holding(1);
  out.printed = printed->value;
  // Every logged step stands for those since the one before: 6 % for their spread.
  out.recomputed = {sum * (every_step_is_logged(e, steps) ? 0.999 : 0.94), 1e300};
  out.note = "the steps took " + duration(sum);
  if (wide(*printed).high < out.recomputed.low) {
    contradict(out, printed->value, out.recomputed, printed->line);
    blame(out, "total_time_too_short",
          "less than its steps took: another unit, another start, or other steps");
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
    const bool sampled = !every_step_is_logged(e, steps);
    if (!found && !(sampled && std::abs(loss->value - losses.back()) < 0.5)) {
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
    if (step->value + 1 < last || (e.record.format.name == "assay" && step->value < last)) {
      contradict(out, step->value, {last, 1e300}, step->line);
      blame(out, "final_step_earlier", "the log goes on after its final step");
    } else if (e.record.format.name == "assay" && step->value > last) {
      contradict(out, step->value, exact_interval(last), step->line);
      blame(out, "final_step_later", "steps are said to be done that have no line");
    }
  }
  if (out.judged == 0) return not_judged("steps");
  return out;
}

}  // namespace assay::spec::audit
