// Rates over the whole run that a summary prints: steps/s and sequences/s.
#include <algorithm>
#include <cmath>

#include "spec/audit/batch_of_run.hpp"
#include "spec/audit/groups.hpp"
#include "spec/audit/summary_steps.hpp"
#include "spec/text/quantity.hpp"

namespace assay::spec::audit {
namespace {

/// How many steps the total time may hold: those of the whole run, where the log says how many; up to the
/// last logged one, or those since a resume, and where nothing says where the run ended, up to the next line,
/// which was never written.
std::vector<Interval> steps_done(const Evidence& e, const Printed& summary) {
  std::vector<Interval> out;
  for (const Setting end : {Setting::final_step, Setting::max_steps})
    if (usable(e.record[end])) out.push_back(exact_interval(e.record[end]->value));
  const double unlogged = out.empty() ? std::max(0.0, e.line_distance - 1) : 0;
  const std::vector<const Step*> done = covered(e, summary);
  if (!done.empty() && (*done.back())[Field::step]) {
    const double last = (*done.back())[Field::step]->value, first = (*done.front())[Field::step]->value;
    for (const double steps : {last, last + 1, last - first, last - first + 1})
      out.push_back({steps, steps + unlogged});
  }
  return out;
}

/// A printed rate over the wall clock against `each` per step of any count of steps that it may run over.
Result judge_run_rate(const Evidence& e, const Printed& printed, Interval each, const char* what) {
  const auto& seconds = e.record[Setting::total_seconds];
  if (!usable(seconds)) return not_judged("total time");
  const std::vector<Interval> counts = steps_done(e, printed);
  if (counts.empty()) return not_judged("step numbers");
  Result out = holding(1);
  out.printed = printed.value;
  double usual = 0;
  for (const Interval& steps : counts) {
    if (steps.low <= 0) continue;
    const Interval rate = steps * each / wide(*seconds);
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

/// Which of steps/s and time is wrong where the sequences of a step, made of the one, are a batch of the run,
/// and made of the other are none; empty where nothing tells.
std::string wrong_of_time_and_steps(const Evidence& e) {
  const auto &sequences = e.record[Setting::average_sequences_per_second],
             &steps = e.record[Setting::average_steps_per_second],
             &seconds = e.record[Setting::total_seconds], &planned = e.record[Setting::max_steps];
  if (!usable(sequences) || !usable(steps) || !usable(seconds) || !usable(planned)) return "";
  const BatchOfRun batch = batch_of_run(e);
  // Both rates are of the planned steps, whether they were done or not.
  const Interval by_time = about(wide(*sequences) * wide(*seconds) / wide(*planned)),
                 by_steps = about(wide(*sequences) / wide(*steps));
  const bool time_fits = batch.allows(by_time), steps_fit = batch.allows(by_steps);
  if (time_fits == steps_fit) return "";
  const Interval right = time_fits ? by_time : by_steps;
  const double of_time = sequences->value * seconds->value / planned->value,
               of_steps = sequences->value / steps->value;
  // "32" where the batch is the one multiple of its passes that fits.
  const double whole = batch.passes > 0 ? std::floor(right.high / batch.passes) * batch.passes : 0;
  const bool alone = whole > 0 && whole - batch.passes < right.low;
  return std::string(time_fits ? "steps/s is wrong, not the time: sequences/s make "
                               : "the time is wrong, not steps/s: sequences/s make ") +
         (alone ? shown(whole, Unit::none) : fixed(time_fits ? of_time : of_steps, 2)) +
         " sequences of a step by " + (time_fits ? "the time" : "steps/s") + ", and " +
         fixed(time_fits ? of_steps : of_time, 2) + " by " + (time_fits ? "steps/s" : "the time") + ", " +
         batch.not_so;
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

/// Where no batch is stated, both rates make one: at least a sequence, and reported.
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

/// Of sequences/s that steps/s deny, which agree with the time: the whole multiple of what batch and steps/s
/// make that they are, or one part in as many; empty where they are neither.
std::string multiple_of_steps(const Evidence& e, const Printed& printed, Interval each) {
  constexpr double as_near = 0.01;  // as of a rate over the run's time
  const auto& steps = e.record[Setting::average_steps_per_second];
  if (!usable(steps) || judge_steps_rate(e).verdict != Verdict::holds) return "";
  // Products, not their quotient: of a run whose steps nobody states, the least mean of batches is 0.
  const Interval made = each * wide(*steps) * Interval{1 - as_near, 1 + as_near};
  std::string out;
  int found = 0;
  for (int n = 2; n <= 64; ++n)
    for (const bool part : {false, true})
      if (wide(printed).meets(made * exact_interval(part ? 1.0 / n : n))) {
        ++found;
        out = "sequences/s is " + (part ? "1/" + std::to_string(n) + " of" : std::to_string(n) + " times") +
              " what the batch and steps/s make";
        if (part && e.ranks == n) out += ": one rank's";
      }
  return found == 1 ? out : "";
}

}  // namespace

Result judge_sequences_rate(const Evidence& e) {
  const auto& printed = e.record[Setting::average_sequences_per_second];
  if (!usable(printed)) return not_judged("sequences per second of a summary");
  const auto each = stated_batch(e);
  if (!each) return judge_sequences_of_rates(e, *printed);
  const Interval mean = mean_of_batches(e, *each);
  Result out = judge_run_rate(e, *printed, mean, "sequences/s");
  if (out.verdict != Verdict::contradicts) return out;
  if (std::string multiple = multiple_of_steps(e, *printed, mean); !multiple.empty())
    out.causes.front().text = std::move(multiple);
  return out;
}

}  // namespace assay::spec::audit
