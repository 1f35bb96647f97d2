#include <algorithm>
#include <cmath>

#include "spec/audit/relations.hpp"
#include "spec/audit/running_mean.hpp"

namespace assay::spec::audit {
namespace {

/// Logged steps are a sample of all steps; a clock also runs through pauses (evaluation, checkpoints), which
/// a median over windows leaves out where they are rare.
constexpr double sampling = 0.06, pauses = 0.25, windows = 9;

struct Window {
  Interval steps_time;  ///< what the printed step times or rates add up to [s]
  double printed = 0;
  Interval clock;     ///< what the clock says [s]
  bool whole = true;  ///< every step of it is logged
  std::int64_t line = 0;
};

/// Time that the steps after `from` up to `to` took, by their own numbers; every logged step stands for those
/// since the one before. None where `longest` steps are passed: the numbers of a line that is lost are not
/// those of the line behind it.
std::optional<Window> window_at(const Evidence& e, std::size_t from, std::size_t to, bool by_rate,
                                double longest) {
  Window out{{0, 0}, 0, {0, 0}, true, e.steps[to]->line};
  for (std::size_t i = from + 1; i <= to; ++i) {
    const Step &s = *e.steps[i], &before = *e.steps[i - 1];
    if (!s[Field::step] || !before[Field::step]) return std::nullopt;
    const double gap = s[Field::step]->value - before[Field::step]->value;
    std::optional<Interval> each;
    if (!by_rate && usable(s[Field::seconds])) each = wide(*s[Field::seconds]);
    if (by_rate && usable(s[Field::tokens_per_second]) && e.tokens_per_step)
      each = *e.tokens_per_step / wide(*s[Field::tokens_per_second]);
    if (!each || gap <= 0 || gap > longest) return std::nullopt;
    out.steps_time = out.steps_time + exact_interval(gap) * *each;
    out.printed += gap * each->middle();
    out.whole = out.whole && gap == 1;
  }
  const auto &begin = (*e.steps[from])[Field::elapsed], &end = (*e.steps[to])[Field::elapsed];
  if (!begin || !end) return std::nullopt;
  out.clock = wide(*end) - wide(*begin);
  return out;
}

/// The window of median ratio: one slow evaluation does not make the others wrong.
void compare_windows(const Evidence& e, bool by_rate, Comparison& to) {
  struct Judged {
    double ratio;
    Window window;
  };
  std::vector<Judged> judged;
  const bool windowed = e.averaged(Field::tokens_per_second) && e.record.format.name == "torchtitan";
  const double longest = windowed ? e.line_distance : 1e300;
  for (const Stretch& stretch : e.stretches) {
    // The first step holds compilation; what the clock shows before it is set-up.
    const std::size_t begin = stretch.begin, count = stretch.end - stretch.begin;
    if (count < 3) continue;
    const std::size_t each = std::max<std::size_t>(1, count / static_cast<std::size_t>(windows));
    for (std::size_t from = begin; from + each < stretch.end; from += each) {
      const auto w = window_at(e, from, from + each, by_rate, longest);
      if (w && w->clock.low > 0) judged.push_back({w->printed / w->clock.middle(), *w});
    }
  }
  if (judged.size() < 2) return;
  std::nth_element(judged.begin(), judged.begin() + static_cast<std::ptrdiff_t>(judged.size() / 2),
                   judged.end(), [](const Judged& a, const Judged& b) { return a.ratio < b.ratio; });
  const Window& w = judged[judged.size() / 2].window;
  // A mean over the steps since the line before is of the very steps that the clock shows; a rate of one step
  // stands for those that are not logged. One that may be a mean since the start is slower than the steps
  // are, not faster.
  const double loose = by_rate && !windowed ? 3 : 1, loose_pauses = w.whole ? 1 : loose;
  add_sample(to, {w.printed, w.steps_time.low * (1 - loose * sampling), w.steps_time.high, w.line},
             {w.clock.low * (1 - loose_pauses * pauses), w.clock.high * (1 + loose * sampling)});
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
