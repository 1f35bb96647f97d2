// Means that a summary prints of its lines.
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
  if (!e.trainer.summary_of_state) return of_lines;
  // What the tokens seen leave open is reported, unless the lines' rates say more.
  Result of_state = judge_tokens_rate_of_state(e);
  const bool open = of_state.verdict == Verdict::cannot_be_judged;
  return open && of_lines.verdict != Verdict::cannot_be_judged ? of_lines : of_state;
}

}  // namespace assay::spec::audit
