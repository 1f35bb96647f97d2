// Means and rates that a summary prints.
#include <algorithm>
#include <cmath>
#include <functional>

#include "spec/audit/groups.hpp"
#include "spec/audit/relations.hpp"
#include "spec/audit/summary_steps.hpp"
#include "spec/audit/unlogged_steps.hpp"
#include "spec/text/quantity.hpp"

namespace assay::spec::audit {
namespace {

/// Evaluations and checkpoints between the logged steps. Chosen: so much of the mean step. [share]
constexpr double pauses_of_means = 0.05;

/// The mean of all steps, where not every one is logged: as far outside the logged ones as these may lie
/// apart, slower by pauses, faster by what logging takes. The first one holds compilation.
Interval mean_of_others(const Evidence& e, const std::vector<const Step*>& steps, Field field) {
  std::vector<Interval> logged = intervals_of(steps, field), times = intervals_of(steps, Field::seconds);
  if (logged.size() < 2) return {0, 1e300};
  logged.erase(logged.begin());
  const Interval seen = hull(logged);
  const double spread = apart(logged);
  if (field == Field::seconds)
    return {std::max(0.0, seen.low * least_without_logging(seen.low) - spread),
            seen.high * (1 + pauses_of_means) + spread};
  double left = 1 - most_of_logging;
  if (!times.empty())
    left = least_without_logging(hull(times).low);
  else if (field == Field::tokens_per_second && e.tokens_per_step && seen.high > 0)
    left = least_without_logging(e.tokens_per_step->low / seen.high);
  return {std::max(0.0, seen.low / (1 + pauses_of_means) - spread),
          left > 0 ? seen.high / left + spread : 1e300};
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
  Interval others = mean_of_others(e, steps, field);
  others.high = std::max(others.high, all + (others.high - *largest));  // the slow first step included
  if (!every_step_is_logged(e, steps) && shown.meets(others)) {
    out.note = "within what the logged steps show; not every step is logged";
    out.recomputed = others;
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
  Result of_lines = judge_mean(e, Setting::average_tokens_per_second, Field::tokens_per_second, "tokens/s");
  if (e.record.format.name != "hugging_face") return of_lines;
  // What the tokens seen leave open is told, unless the lines' rates say more.
  Result of_state = judge_tokens_rate_of_state(e);
  const bool open = of_state.verdict == Verdict::cannot_be_judged;
  return open && of_lines.verdict != Verdict::cannot_be_judged ? of_lines : of_state;
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

namespace {

/// The one whole number of `passes` sequences that the interval holds; 0: none, or several.
double whole_passes(const Interval& sequences, double passes) {
  const double n = passes * std::ceil(sequences.low * (1 - 1e-9) / passes);
  return n > 0 && n <= sequences.high * (1 + 1e-9) && sequences.high - sequences.low < passes / 2 ? n : 0;
}

/// Which of steps/s and time is wrong where the sequences of a step, made of one of them, are whole passes
/// and made of the other are not; empty where nothing tells.
std::string wrong_of_time_and_steps(const Evidence& e) {
  const auto &sequences = e.record[Setting::average_sequences_per_second],
             &steps = e.record[Setting::average_steps_per_second],
             &seconds = e.record[Setting::total_seconds];
  if (!usable(sequences) || !usable(steps) || !usable(seconds) || !(wide(*steps).low > 0)) return "";
  const std::vector<double> counts = steps_done(e, *steps);
  if (counts.empty() || !(counts.front() > 0)) return "";
  const double passes = e.micro ? e.micro->low : 1;
  const Interval by_time = wide(*sequences) * wide(*seconds) / exact_interval(counts.front()),
                 by_steps = wide(*sequences) / wide(*steps);
  const double of_time = whole_passes(by_time, passes), of_steps = whole_passes(by_steps, passes);
  if ((of_time > 0) == (of_steps > 0)) return "";
  const std::string right = shown(std::max(of_time, of_steps), Unit::none);
  return std::string(of_time > 0 ? "steps/s is wrong, not the time: sequences/s make "
                                 : "the time is wrong, not steps/s: sequences/s make ") +
         right + " sequences of a step by " + (of_time > 0 ? "the time" : "steps/s") + ", and " +
         fixed(sequences->value * (of_time > 0 ? 1 / steps->value : seconds->value / counts.front()), 2) +
         " by " + (of_time > 0 ? "steps/s" : "the time");
}

}  // namespace

Result judge_steps_rate(const Evidence& e) {
  const auto& printed = e.record[Setting::average_steps_per_second];
  if (!usable(printed)) return not_judged("steps per second of a summary");
  Result out = judge_run_rate(e, *printed, exact_interval(1), "steps/s");
  if (const std::string which = wrong_of_time_and_steps(e);
      out.verdict == Verdict::contradicts && !which.empty())
    out.causes.front().text = which;
  return out;
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
  // The last batch of a pass over the data may be a short one: then the mean is no whole number.
  out.note = "with the steps/s: " +
             (most < least ? fixed(printed.value / steps->value, 2) : shown(least, Unit::none)) +
             (most > least ? " to " + shown(most, Unit::none) : std::string()) +
             (most == 1 && least == 1 ? " sequence" : " sequences") + " per step";
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

}  // namespace assay::spec::audit
