#include "spec/audit/clock_windows.hpp"

#include <algorithm>

#include "spec/audit/running_mean.hpp"
#include "spec/audit/unlogged_steps.hpp"

namespace assay::spec::audit {
namespace {

constexpr std::size_t windows = 9;
/// Chosen: so many of a log's windows are no accident of single stamps. [share]
constexpr std::size_t one_of = 20;
/// The longest windows that are tried from every line on: a hundred seconds of steps of a second and more,
/// which stamps of a second show to a fiftieth. [lines]
constexpr std::size_t longest_tried = 64;

/// By the line's own number, of one step. [s]
std::optional<Interval> time_of(const Evidence& e, const Step& step, bool by_rate) {
  if (!by_rate && usable(step[Field::seconds])) return wide(*step[Field::seconds]);
  if (by_rate && usable(step[Field::tokens_per_second]) && e.tokens_per_step)
    return *e.tokens_per_step / wide(*step[Field::tokens_per_second]);
  return std::nullopt;
}

/// Of a step whose line is not here, by the line behind it. A log that begins as it was written seldom is an
/// excerpt (of every so-manieth of its lines from the first on), and then to a tenth: chosen.
Interval told_by_line(Interval shown, const Times& times) {
  constexpr double open = 0.1;
  return times.from_the_first ? Interval{shown.low * (1 - open), shown.high * (1 + open)}
                              : told_by_one(shown);
}

/// Time that the steps after `from` up to `to` took, by their own numbers; `others`: of each that is not
/// logged. None where more than the longest distance is passed: the numbers of a line that is lost are not
/// those of the line behind it.
std::optional<ClockWindow> window_at(const Evidence& e, std::size_t from, std::size_t to, const Times& times,
                                     const std::optional<Interval>& others) {
  ClockWindow out{{0, 0}, 0, {0, 0}, true, false, e.steps[to]->line};
  for (std::size_t i = from + 1; i <= to; ++i) {
    const Step &s = *e.steps[i], &before = *e.steps[i - 1];
    if (!s[Field::step] || !before[Field::step]) return std::nullopt;
    const double gap = s[Field::step]->value - before[Field::step]->value;
    const auto each = time_of(e, s, times.by_rate);
    if (!each || gap <= 0 || gap > times.longest) return std::nullopt;
    const Interval one = *each;
    const double own = times.of == Of::since_the_line_before ? std::min(gap, times.interval)
                       : times.of == Of::one                 ? 1
                                                             : gap;
    Interval all = exact_interval(own) * one;
    if (own < gap) all = all + exact_interval(gap - own) * others.value_or(told_by_line(one, times));
    if (times.of == Of::unknown) all.low /= half_way_to_twice;
    out.steps_time = out.steps_time + all;
    out.printed += gap * one.middle();
    out.whole = out.whole && (gap == 1 || (own == gap && times.of != Of::unknown));
  }
  const auto &begin = (*e.steps[from])[Field::elapsed], &end = (*e.steps[to])[Field::elapsed];
  if (!begin || !end) return std::nullopt;
  out.clock = wide(*end) - wide(*begin);
  if (!(out.clock.low > 0)) return std::nullopt;
  out.paused = pause_between(e, e.steps[from]->line, out.line);
  return out;
}

/// Of each step that no line of the stretch shows. The first line's holds compilation.
std::optional<Interval> others_of(const Evidence& e, const Stretch& stretch, const Times& times) {
  std::vector<Interval> shown;
  if (times.from_the_first) return std::nullopt;
  for (std::size_t i = stretch.begin + 1; i < stretch.end; ++i)
    if (const auto each = time_of(e, *e.steps[i], times.by_rate)) shown.push_back(*each);
  return times.of == Of::since_the_line_before ? left_out_times(shown) : unlogged_times(shown);
}

/// The first step holds compilation; what the clock shows before it is set-up.
void add_windows(const Evidence& e, const Stretch& stretch, const Times& times, std::size_t lines,
                 bool sliding, std::vector<ClockWindow>& out) {
  const auto others = others_of(e, stretch, times);
  for (std::size_t from = stretch.begin; from + lines < stretch.end; from += sliding ? 1 : lines)
    if (const auto window = window_at(e, from, from + lines, times, others)) out.push_back(*window);
}

/// As trainers print it that add their first step to every so many.
bool begins_with_the_first(const Evidence& e) {
  if (e.stretches.empty() || e.stretches.front().end < 3) return false;
  const auto &first = (*e.steps[0])[Field::step], &second = (*e.steps[1])[Field::step];
  return first && second && first->value == 1 && second->value == e.line_distance;
}

}  // namespace

bool pause_between(const Evidence& e, std::int64_t from, std::int64_t to) {
  const auto& lines = e.pauses;
  const auto first = std::upper_bound(lines.begin(), lines.end(), from);
  return first != lines.end() && *first < to;
}

Times times_of(const Evidence& e, bool by_rate) {
  Times out{by_rate, by_rate ? Of::unknown : Of::one};
  if (by_rate && e.record.format.tokens_per_second == Scope::gpu && e.gpus) out.of_gpus = *e.gpus;
  if (by_rate ? e.averaged(Field::tokens_per_second) && e.trainer.rate_since_line_before
              : e.averaged(Field::seconds)) {
    out.of = Of::since_the_line_before;
    out.longest = e.line_distance;
    if (e.record.line_interval > 0) out.interval = e.record.line_interval;
    out.from_the_first = begins_with_the_first(e);
  }
  return out;
}

std::vector<ClockWindow> clock_windows(const Evidence& e, const Times& times, std::size_t lines,
                                       bool sliding) {
  std::vector<ClockWindow> out;
  for (const Stretch& stretch : e.stretches)
    if (stretch.end - stretch.begin >= 3) add_windows(e, stretch, times, lines, sliding, out);
  return out;
}

std::vector<ClockWindow> ninths(const Evidence& e, const Times& times) {
  std::vector<ClockWindow> out;
  for (const Stretch& stretch : e.stretches)
    if (const std::size_t count = stretch.end - stretch.begin; count >= 3)
      add_windows(e, stretch, times, std::max<std::size_t>(1, count / windows), false, out);
  return out;
}

bool runs_like_the_steps(const Evidence& e, const Times& times) {
  std::size_t most = 0;
  for (const Stretch& stretch : e.stretches) most = std::max(most, stretch.end - stretch.begin);
  for (std::size_t lines = 1; lines < most && lines <= longest_tried; lines *= 2) {
    std::size_t all = 0, alike = 0;
    for (const ClockWindow& w : clock_windows(e, times, lines, true)) {
      ++all;
      // A step that is logged alone says too little of others.
      alike += w.whole || times.of == Of::since_the_line_before
                   ? w.printed >= w.clock.high * times.of_gpus * (1 - pauses) &&
                         w.steps_time.low <= (w.clock.high + until_stamped) * times.of_gpus
                   : 0;
    }
    if (alike > 0 && alike * one_of >= all) return true;
  }
  return false;
}

Missed missed_alike(const Evidence& e, const Times& times) {
  Times as_written = times;
  as_written.interval = as_written.longest;
  std::vector<Interval> shares, between;
  for (const ClockWindow& w : clock_windows(e, as_written, 1)) {
    const Interval clock{std::max(w.clock.low - until_stamped, 1e-9), w.clock.high + until_stamped};
    const Interval steps = w.steps_time / exact_interval(times.of_gpus);
    shares.push_back(steps / clock);
    between.push_back(clock - steps);
  }
  const auto alike = [&](const std::vector<Interval>& all) {
    return all.size() > 1 && (one_of - 1) * all.size() <= one_of * shared_factor(all).ratios;
  };
  // An interval of times may hold 0 and less: shared_factor asks for their order alone.
  return {alike(shares), alike(between)};
}

}  // namespace assay::spec::audit
