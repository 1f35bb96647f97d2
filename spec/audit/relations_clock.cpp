#include <algorithm>

#include "spec/audit/clock_windows.hpp"
#include "spec/audit/denied_lines.hpp"
#include "spec/audit/mean_since_start.hpp"
#include "spec/audit/relations.hpp"

namespace assay::spec::audit {
namespace {

/// Of a log that holds lines of validations, whose time its rates leave out, or whose clock runs like the
/// steps elsewhere: as long as may be. What lies behind such a line is of fewer steps than the step's number
/// says, so that no stamp of it helps.
constexpr double any_time = 0.99;

/// What the clock shows more in every stretch that no line of a pause stands in, of a mean of all its steps.
void note_longer_clock(const Evidence& e, const std::vector<ClockWindow>& judged, Comparison& to) {
  double least = 1e300;
  for (const ClockWindow& w : judged)
    if (!w.paused) least = std::min(least, (w.clock.low - until_stamped) / w.steps_time.high);
  if (least == 1e300) return;
  to.clock_over_steps = least;
  if (e.trainer.timer_pauses) to.left_out = " (its timer stops for evaluation and saving)";
}

/// Of tokens/s that are the tokens since the start over the time since the start, or a multiple: every
/// line's.
void compare_every_mean(const Evidence& e, Comparison& to) {
  constexpr double never = 1e-9;  // of a stamp of 0 s
  for (std::size_t i = 0; i < e.steps.size(); ++i) {
    const Step& step = *e.steps[i];
    const auto &rate = step[Field::tokens_per_second], &total = step[Field::tokens_total],
               &elapsed = step[Field::elapsed];
    if (!usable(rate) || !usable(total) || !elapsed) continue;
    const Interval stamp = wide(*elapsed), clock{std::max(stamp.low, never), stamp.high + until_stamped},
                   by_rate = wide(*total) / wide(*rate);
    to.samples.push_back({by_rate / clock, by_rate.middle(), clock, step.line, static_cast<std::int64_t>(i)});
  }
}

/// Of a rate that is the tokens over the time since the line before, or a multiple of it: no pause is in the
/// one and not in the other.
bool compare_mean_since_line_before(const Evidence& e, Comparison& to) {
  if (times_of(e, true).of != Of::unknown) return false;
  const auto multiple = multiple_of_mean_since_line_before(e);
  const auto& elapsed = (*e.steps.back())[Field::elapsed];
  if (!multiple || !usable(elapsed)) return false;
  const Interval clock = wide(*elapsed);
  to.samples.push_back(
      {exact_interval(1 / *multiple), clock.middle() / *multiple, clock, e.steps.back()->line});
  return true;
}

/// Of a rate that is a mean, by the writer's source or as the lines tell.
bool compare_mean(const Evidence& e, Comparison& to) {
  if (!e.record.format.rate_since_start && !multiple_of_mean_since_start(e))
    return compare_mean_since_line_before(e, to);
  compare_every_mean(e, to);
  return true;
}

/// Of a rate of which nobody says whose it is, beside GPUs of which nobody says how many: one GPU's may be
/// any part of what all do, and none is more than that.
void hold_as_all_at_the_most(Comparison& by_rate) {
  std::erase_if(by_rate.samples, [](const Sample& sample) { return sample.ratio.low > 1; });
}

/// The window of median ratio: one slow evaluation does not make the others wrong. A clock also runs through
/// pauses, which the median leaves out where they are rare.
void compare_windows(const Evidence& e, bool by_rate, Comparison& to) {
  const Times times = times_of(e, by_rate);
  std::vector<ClockWindow> judged = ninths(e, times);
  if (judged.size() < 2) return;
  const bool mean = times.of == Of::since_the_line_before && !e.record.validates;
  if (mean) note_longer_clock(e, judged, to);
  // Windows without a line of a pause, shorter ones if need be.
  const auto is_paused = [](const ClockWindow& w) { return w.paused; };
  std::vector<ClockWindow> free = judged;
  std::erase_if(free, is_paused);
  if (free.size() < 2) {
    free = clock_windows(e, times, 1);
    std::erase_if(free, is_paused);
  }
  const bool all_paused = free.size() < 2;
  if (!all_paused) judged = std::move(free);
  const auto median = judged.begin() + static_cast<std::ptrdiff_t>(judged.size() / 2);
  std::nth_element(judged.begin(), median, judged.end(),
                   [](const ClockWindow& a, const ClockWindow& b) { return a.ratio() < b.ratio(); });
  const ClockWindow& w = *median;
  // A rate of one step stands for those that are not logged, evaluations among them: three times as loose.
  double paused = e.record.validates || all_paused      ? any_time
                  : times.of == Of::unknown && !w.whole ? 3 * pauses
                                                        : pauses;
  if (w.steps_time.high < w.clock.low * times.of_gpus * (1 - paused)) {
    if (runs_like_the_steps(e, times))
      paused = any_time, to.paused = true, to.clock_over_steps = 0;
    else if (mean)
      to.missed = missed_alike(e, times);
  }
  to.without_pauses = w.steps_time / Interval{w.clock.low, w.clock.high + until_stamped};
  const Interval clock{w.clock.low * (1 - paused), w.clock.high + until_stamped};
  // The steps' time is as wide as the numbers that it is made of already.
  to.samples.push_back({w.steps_time / clock, w.printed, clock, w.line, -1, w.ratio()});
}

}  // namespace

void compare_clock(const Evidence& evidence, Comparisons& out) {
  bool clock = false, times = false, rates = false;
  for (const Step* step : evidence.steps) {
    clock |= (*step)[Field::elapsed].has_value();
    times |= usable((*step)[Field::seconds]);
    rates |= usable((*step)[Field::tokens_per_second]);
  }
  Comparison &by_time = at(out, Relation::wall_clock), &by_rate = at(out, Relation::rate_wall_clock);
  by_time.missing = !clock ? "time since the start" : !times ? "step time" : "three steps in a row";
  by_rate.missing = !clock ? "time since the start" : !rates ? "tokens/s" : "tokens per step";
  // What the stamps deny of a part of the lines is reported line by line, and not of all of them.
  const bool part = clock && denied_lines(evidence, times ? Field::seconds : Field::tokens_per_second).part;
  if (part) (times ? by_time : by_rate).missing = "a clock that goes with all lines";
  if (clock && times && !part) compare_windows(evidence, false, by_time);
  // One GPU's rate, or one that may be, says no more of the batch where the number of GPUs is lost.
  const Format& format = evidence.record.format;
  const bool whose = evidence.gpus || format.rate_since_start || format.tokens_per_second == Scope::all;
  if (!whose && clock && rates) by_rate.missing = "number of GPUs";
  if (clock && rates && !times && !part && !compare_mean(evidence, by_rate) && evidence.tokens_per_step)
    compare_windows(evidence, true, by_rate);
  if (!whose) hold_as_all_at_the_most(by_rate);
  if (times && rates && clock) by_rate.missing = "nothing: the step times stand for it";
}

}  // namespace assay::spec::audit
