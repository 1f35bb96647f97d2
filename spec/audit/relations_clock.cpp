#include <algorithm>
#include <cmath>

#include "spec/audit/relations.hpp"
#include "spec/audit/running_mean.hpp"
#include "spec/audit/unlogged_steps.hpp"

namespace assay::spec::audit {
namespace {

/// A clock also runs through pauses (evaluation, checkpoints), which a median over windows leaves out where
/// they are rare. Chosen: up to a quarter of the median window is taken for pauses, so that a clock that
/// shows half as much again as the steps contradicts, well before one that shows twice as much.
constexpr double pauses = 0.25, windows = 9;
/// Of a log that holds lines of validations, whose time its rates leave out: as long as may be. What lies
/// behind such a line is of fewer steps than the step's number says, so that no stamp of it helps.
constexpr double validating = 0.99;
/// Between the end of a step and the stamp of its line. Chosen: some ten times what it takes to put a line
/// together and to write it. [s]
constexpr double until_stamped = 0.01;

struct Window {
  Interval steps_time;  ///< what the printed step times or rates add up to [s]
  double printed = 0;
  Interval clock;     ///< what the clock says [s]
  bool whole = true;  ///< every step of it is logged
  std::int64_t line = 0;
};

/// Of which steps the numbers of a line are.
enum class Of {
  all_since_the_line_before,  ///< their mean: of the very steps that the clock shows
  one,                        ///< its own time: every logged step stands for those since the one before
  unknown  ///< a rate, of one step or a mean since the start, whose first steps are slow: never too fast
};

struct Times {
  bool by_rate = false;
  Of of = Of::one;
  double longest = 1e300;  ///< steps between two lines [steps]
};

/// By the line's own number, of one step. [s]
std::optional<Interval> time_of(const Evidence& e, const Step& step, bool by_rate) {
  if (!by_rate && usable(step[Field::seconds])) return wide(*step[Field::seconds]);
  if (by_rate && usable(step[Field::tokens_per_second]) && e.tokens_per_step)
    return *e.tokens_per_step / wide(*step[Field::tokens_per_second]);
  return std::nullopt;
}

/// Time that the steps after `from` up to `to` took, by their own numbers; `others`: of each that is not
/// logged. None where more than the longest distance is passed: the numbers of a line that is lost are not
/// those of the line behind it.
std::optional<Window> window_at(const Evidence& e, std::size_t from, std::size_t to, const Times& times,
                                const std::optional<Interval>& others) {
  Window out{{0, 0}, 0, {0, 0}, true, e.steps[to]->line};
  for (std::size_t i = from + 1; i <= to; ++i) {
    const Step &s = *e.steps[i], &before = *e.steps[i - 1];
    if (!s[Field::step] || !before[Field::step]) return std::nullopt;
    const double gap = s[Field::step]->value - before[Field::step]->value;
    const auto each = time_of(e, s, times.by_rate);
    if (!each || gap <= 0 || gap > times.longest) return std::nullopt;
    const Interval one = *each;
    Interval all = exact_interval(gap) * one;
    if (times.of == Of::one) all = one + exact_interval(gap - 1) * others.value_or(told_by_one(one));
    if (times.of == Of::unknown) all.low /= half_way_to_twice;
    out.steps_time = out.steps_time + all;
    out.printed += gap * one.middle();
    out.whole = out.whole && gap == 1;
  }
  const auto &begin = (*e.steps[from])[Field::elapsed], &end = (*e.steps[to])[Field::elapsed];
  if (!begin || !end) return std::nullopt;
  out.clock = wide(*end) - wide(*begin);
  return out;
}

/// Of each step that no line of the stretch shows. The first line's holds compilation.
std::optional<Interval> others_of(const Evidence& e, const Stretch& stretch, bool by_rate) {
  std::vector<Interval> logged;
  for (std::size_t i = stretch.begin + 1; i < stretch.end; ++i)
    if (const auto each = time_of(e, *e.steps[i], by_rate)) logged.push_back(*each);
  return unlogged_times(logged);
}

/// The window of median ratio: one slow evaluation does not make the others wrong.
void compare_windows(const Evidence& e, bool by_rate, Comparison& to) {
  struct Judged {
    double ratio;
    Window window;
  };
  std::vector<Judged> judged;
  Times times{by_rate, by_rate ? Of::unknown : Of::one};
  if (by_rate && e.averaged(Field::tokens_per_second) && e.trainer.rate_since_line_before)
    times = {by_rate, Of::all_since_the_line_before, e.line_distance};
  if (!by_rate && e.averaged(Field::seconds)) times.of = Of::all_since_the_line_before;
  for (const Stretch& stretch : e.stretches) {
    // The first step holds compilation; what the clock shows before it is set-up.
    const std::size_t begin = stretch.begin, count = stretch.end - stretch.begin;
    if (count < 3) continue;
    const auto others = others_of(e, stretch, by_rate);
    const std::size_t each = std::max<std::size_t>(1, count / static_cast<std::size_t>(windows));
    for (std::size_t from = begin; from + each < stretch.end; from += each) {
      const auto w = window_at(e, from, from + each, times, others);
      if (w && w->clock.low > 0) judged.push_back({w->printed / w->clock.middle(), *w});
    }
  }
  if (judged.size() < 2) return;
  std::nth_element(judged.begin(), judged.begin() + static_cast<std::ptrdiff_t>(judged.size() / 2),
                   judged.end(), [](const Judged& a, const Judged& b) { return a.ratio < b.ratio; });
  const Window& w = judged[judged.size() / 2].window;
  if (times.of == Of::all_since_the_line_before && !e.record.validates) {
    double least = 1e300;
    for (const Judged& j : judged)
      least = std::min(least, (j.window.clock.low - until_stamped) / j.window.steps_time.high);
    to.clock_over_steps = least;
    if (e.trainer.timer_pauses) to.left_out = " (its timer stops for evaluation and saving)";
  }
  // A rate of one step stands for those that are not logged, evaluations among them: three times as loose.
  const double paused = e.record.validates                    ? validating
                        : times.of == Of::unknown && !w.whole ? 3 * pauses
                                                              : pauses;
  to.without_pauses = w.steps_time / Interval{w.clock.low, w.clock.high + until_stamped};
  add_sample(to, {w.printed, w.steps_time.low, w.steps_time.high, w.line},
             {w.clock.low * (1 - paused), w.clock.high + until_stamped}, -1, w.clock.middle());
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
  if (clock && times) compare_windows(evidence, false, by_time);
  // One GPU's rate, or one that may be, says nothing of the batch where the number of GPUs is lost.
  const bool whose = evidence.gpus || evidence.record.format.tokens_per_second == Scope::all;
  if (!whose && clock && rates) by_rate.missing = "number of GPUs";
  if (clock && rates && !times && whose && evidence.tokens_per_step) compare_windows(evidence, true, by_rate);
  if (times && rates && clock) by_rate.missing = "nothing: the step times stand for it";
}

}  // namespace assay::spec::audit
