#include <algorithm>
#include <cmath>

#include "spec/audit/groups.hpp"
#include "spec/audit/rate_schedule.hpp"
#include "spec/audit/relations.hpp"
#include "spec/text/quote.hpp"

namespace assay::spec::audit {

namespace rate_schedule {
namespace {

/// The lowest rate under which the place that leaves `stated` most would have its printed rate, to what two
/// steps of the fall make: they may be numbered in another way. Nothing where it would have to be above half
/// the highest.
std::optional<Interval> least_by(const Stated& s, Shape stated, const std::vector<Place>& places) {
  const Place* furthest = nullptr;
  double most = 0;
  for (const Place& at : places) {
    const Interval expected = rate(stated, at), printed = wide(*at.rate);
    const double off = std::max(printed.low - expected.high, expected.low - printed.high);
    if (off > most) most = off, furthest = &at;
  }
  if (!furthest) return std::nullopt;
  const auto with_least = [&](double least) {
    stated.least = stated.most_least = least;
    return rate(stated, *furthest);
  };
  // Rates rise with it.
  const auto solved = [&](double wanted) {
    double low = 0, high = 0.5 * s.peak;
    for (int halving = 0; halving < 60; ++halving) {
      const double middle = (low + high) / 2;
      (with_least(middle).middle() < wanted ? low : high) = middle;
    }
    return high;
  };
  const Interval printed = wide(*furthest->rate);
  if (with_least(0).low > printed.high || with_least(0.5 * s.peak).high < printed.low) return std::nullopt;
  const double of_numbering = 2 * s.peak / std::max(2.0, stated.length);
  return Interval{std::max(0.0, solved(printed.low) - of_numbering), solved(printed.high) + of_numbering};
}

/// Other schedules that would give every printed rate.
void blame_schedule(Result& out, const Evidence& e, const Stated& s, const std::vector<Place>& places,
                    std::size_t stride) {
  const auto explains = [&](const Stated& other, double step_factor = 1) {
    return best_fit(other, step_factor, places, stride).misses == 0;
  };
  const auto with = [&](auto change) {
    Stated other = s;
    change(other);
    return other;
  };
  const double passes = e.accumulation ? e.accumulation->low : 1, ranks = e.ranks.value_or(1);
  if (s.warmup > 0 && explains(with([](Stated& o) { o.warmup = 0; })))
    blame(out, "schedule_without_warmup", "the warm-up was left out");
  if (passes > 1 && explains(s, passes))
    blame(out, "schedule_per_micro_batch", "the schedule advances with every micro-batch");
  if (ranks > 1 && ranks != passes && explains(s, ranks))
    blame(out, "schedule_per_rank", "the schedule advances by the number of ranks");
  for (const auto& [id, text, factor] :
       {std::tuple("rate_times_ranks", "multiplied by the number of ranks", ranks),
        std::tuple("rate_times_root_ranks", "multiplied by the root of the number of ranks",
                   std::sqrt(ranks)),
        std::tuple("rate_over_passes", "divided by the accumulation", 1 / passes)})
    if (factor != 1 && explains(with([&, f = factor](Stated& o) {
          o.peak *= f;
          o.start *= f;
          o.most_start *= f;
          o.most_least *= std::max(f, 1.0);
          o.least *= std::min(f, 1.0);
        })))
      blame(out, id, text);
  // One lowest rate for all lines: any of them tells which, the one that is furthest off best.
  if (const auto least = least_by(s, best_fit(s, 1, places, stride).shape, places);
      least && explains(with([&](Stated& o) { o.least = least->low, o.most_least = least->high; })))
    blame(out, "schedule_other_minimum", "it falls to another lowest rate than stated");
  const auto &decay = e.record[Setting::decay_steps], &most = e.record[Setting::max_steps];
  if (decay && most && decay->value != most->value &&
      explains(with([&](Stated& o) { o.ends = {most->value}; })))
    blame(out, "schedule_other_end", "the decay ends with the run, not where stated");
  if (out.causes.empty() && explains(with([](Stated& o) {
        o.kinds = {Shape::constant, Shape::linear, Shape::cosine, Shape::inverse_root};
      })))
    blame(out, "schedule_other_shape", "another shape than stated");
  if (out.causes.empty()) blame(out, "schedule_other", "another schedule than stated");
}

/// Whether losses may be scaled, so that gradients overflow: those of fp32 and bf16 are not.
bool may_overflow(const Evidence& e) {
  const auto precision = computing_precision(e.record.dtype);
  return precision != Precision::bf16 && precision != Precision::fp32 && precision != Precision::fp64;
}

/// Steps before the first line of a log without its beginning, of a trainer that leaves out steps whose
/// gradients overflow: any of them may have been left out. More than `most_lost` are not tried.
double lost_steps(const Evidence& e, const std::vector<Place>& places) {
  const bool scaled = may_overflow(e);
  const bool leaves_out =
      e.record.dtype == "fp16" || std::any_of(e.steps.begin(), e.steps.end(), [&](const Step* step) {
        const auto& skipped = (*step)[Field::skipped];
        return skipped && (scaled || skipped->value > 0);
      });
  if (!leaves_out || places.size() < 2) return 0;
  return std::max(0.0, (places[0].step - (places[1].step - places[0].step)) / places[0].unit);
}

constexpr double most_lost = 100;

/// The places by the steps that are known to be left out, and how many more may have been: where the lines do
/// not count them, all since the last count; else those before the first line, of lines that are lost, and of
/// those whose count is (`uncounted`, by place). Empty where nothing is left open.
std::vector<Place> left_open(const Evidence& e, std::vector<Place> places, const std::vector<double>& waited,
                             const std::vector<double>& counted_at, const std::vector<bool>& uncounted) {
  const bool untold = e.record.skips_untold && may_overflow(e);
  double lost = lost_steps(e, places), most = 0, counted_late = 0;
  const bool scaled = may_overflow(e),
             leaves_out = lost > 0 || e.record.dtype == "fp16" ||
                          (scaled && std::find(uncounted.begin(), uncounted.end(), true) != uncounted.end());
  for (std::size_t i = 0; i < places.size(); ++i) {
    const double distance = i > 0 ? places[i].number - places[i - 1].number : 0;
    if (leaves_out && e.line_distance > 0 && distance > e.line_distance) lost += distance - e.line_distance;
    if (scaled && uncounted[i]) lost += std::max(1.0, e.line_distance);
    // Behind lines that are not kept, one without a count stands with an older one: the next count tells of
    // both.
    if (i > 0 && uncounted[i - 1]) counted_late += waited[i] - waited[i - 1];
    places[i].step -= waited[i] * places[i].unit;
    // Of lost lines the lag is one number for all lines behind them; those that count none lag step by step.
    places[i].lag_least = untold ? -waited[i] : -counted_late;
    places[i].lag_most = untold ? places[i].number - waited[i] : lost;
    places[i].stretch = i == 0 ? 0 : places[i - 1].stretch + (distance > 0 ? 0 : 1);
    places[i].untold = untold ? std::max(0.0, places[i].number - counted_at[i]) : lost;
    most = std::max(most, places[i].untold);
  }
  return most > 0 ? places : std::vector<Place>();
}

/// Steps left out so far, by place, of which those of steps that a restart did again count once.
std::vector<double> without_those_done_again(const std::vector<Place>& places,
                                             const std::vector<double>& waited) {
  std::vector<double> out;
  std::vector<std::pair<double, double>> behind;  // numbers of steps that stand, and those left out by then
  double twice = 0;
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (!behind.empty() && places[i].number <= behind.back().first) {
      const double until = behind.back().second;
      while (!behind.empty() && behind.back().first >= places[i].number) behind.pop_back();
      twice += until - (behind.empty() ? 0 : behind.back().second);
    }
    out.push_back(waited[i] - twice);
    behind.emplace_back(places[i].number, out.back());
  }
  return out;
}

}  // namespace
}  // namespace rate_schedule

Result judge_learning_rate(const Evidence& e) {
  using namespace rate_schedule;
  std::vector<Place> places;
  // Some trainers' schedules wait for a step that was left out, others go on.
  std::vector<double> waited, counted_at;
  std::vector<bool> uncounted;
  double left_out = 0, counted = 0;
  const Field counter = by_samples(e) ? Field::sequences_total : Field::step;
  for (const Step* step : e.steps) {
    // Of a log whose lines count none, none is no count.
    if (const auto& skipped = (*step)[Field::skipped];
        skipped && !(e.record.skips_untold && skipped->value == 0))
      left_out = skipped->value, counted = (*step)[Field::step] ? (*step)[Field::step]->value : counted;
    else if (const auto& norm = (*step)[Field::gradient_norm]; norm && !std::isfinite(norm->value))
      ++left_out;
    const auto& batch = (*step)[Field::step_sequences];
    if (by_samples(e) && !usable(batch)) continue;
    if (const auto& n = (*step)[counter], &r = (*step)[Field::learning_rate];
        n && r && std::isfinite(r->value))
      places.push_back({n->value, &*r, r->line ? r->line : step->line, by_samples(e) ? batch->value : 1,
                        (*step)[Field::step] ? (*step)[Field::step]->value : 0}),
          waited.push_back(left_out), counted_at.push_back(counted),
          uncounted.push_back(!(*step)[Field::skipped]);
  }
  // Lines of a trainer that prints no count leave none open.
  if (std::all_of(uncounted.begin(), uncounted.end(), [](bool none) { return none; }))
    uncounted.assign(uncounted.size(), false);
  if (places.empty()) {
    const bool unnumbered = std::any_of(e.steps.begin(), e.steps.end(),
                                        [](const Step* s) { return (*s)[Field::learning_rate].has_value(); });
    return not_judged(unnumbered && by_samples(e) ? "samples since the start"
                      : unnumbered                ? "step numbers (--set max_steps=N)"
                                                  : "learning rate");
  }
  // Of which size those were that were left out while the batch grew is not said.
  const bool ramps = std::any_of(places.begin(), places.end(),
                                 [&](const Place& at) { return at.unit != places.front().unit; });
  if (ramps && left_out > 0) return not_judged("samples that the schedule has seen");
  const auto schedule = stated(e);
  if (!schedule) return not_judged("highest learning rate of the schedule");
  if (schedule->kinds.empty()) return not_judged("the shape of the schedule " + quote(e.record.schedule));
  Result out = holding(static_cast<std::int64_t>(places.size()));
  const bool shape_known = !schedule->ends.empty() || schedule->kinds.front() == Shape::constant ||
                           schedule->kinds.front() == Shape::inverse_root ||
                           schedule->kinds.front() == Shape::wsd;
  const bool warmup_known = e.record[warmup_setting(e)].has_value();
  const std::size_t stride = std::max<std::size_t>(1, places.size() / 128);
  // Stretches after a restart go on by number, so one shape serves all.
  Fit fit;
  std::size_t off = shape_known && warmup_known ? places.size() + 1 : 0;
  const std::vector<double> waited_once = without_those_done_again(places, waited);
  const double lost = std::min(lost_steps(e, places), most_lost);
  const std::vector<Place> places_as_printed = places;
  std::vector<std::vector<Place>> countings = {places};
  // Samples that are counted wrong are another relation's: with one batch the steps stand for them too.
  if (by_samples(e) && !ramps) {
    countings.push_back(places);
    for (Place& at : countings.back()) at.step = at.number * at.unit;
  }
  // -1: the schedule waits for none.
  for (double before = -1; before <= lost; ++before)
    for (std::size_t way = 0; way < 2 * countings.size(); ++way) {
      const std::vector<Place>& all = countings[way / 2];
      const std::vector<double>& waits = way % 2 == 0 ? waited : waited_once;
      if (off == 0 || (before == 0 && left_out == 0)) break;
      if (way % 2 == 1 && (before < 0 || waited_once == waited)) continue;
      std::vector<Place> behind = all;
      for (std::size_t i = 0; before >= 0 && i < behind.size(); ++i)
        behind[i].step -= (waits[i] + before) * behind[i].unit;
      const Fit waiting = best_fit(*schedule, 1, behind, stride);
      const std::size_t fewer = misses(waiting.shape, behind, 1, behind.size());
      if (fewer < off) fit = waiting, places = behind, off = fewer;
    }
  bool any_left_out = false;
  if (off > 0 && shape_known && warmup_known)
    if (const std::vector<Place> open = left_open(e, places_as_printed, waited, counted_at, uncounted);
        !open.empty())
      if (const Fit any = best_fit(*schedule, 1, open, stride);
          any.misses == 0 && misses(any.shape, open, 1, 1) == 0 &&
          (!in_one_order(open) || lags_in_order(any.shape, open, 1)))
        fit = any, places = open, off = 0, any_left_out = true;
  const auto allowed = [&](const Place& at) {
    return shape_known && warmup_known ? rate(fit.shape, at) : Interval{0, schedule->peak};
  };
  out.note =
      any_left_out && e.record.skips_untold ? "where no line counts them, any step may have been left out"
      : any_left_out                ? "of the steps whose lines are not there, any may have been left out"
      : shape_known && warmup_known ? ""
                                    : "no more than the highest rate; the schedule is not stated in full";
  for (const Place& place : places) {
    const Interval expected = allowed(place);
    if (out.verdict != Verdict::contradicts) out.printed = place.rate->value, out.recomputed = expected;
    if (!agrees(*place.rate, expected)) contradict(out, place.rate->value, expected, place.line);
  }
  if (out.verdict != Verdict::contradicts) return out;
  const double share = static_cast<double>(out.contradicted) / static_cast<double>(out.judged);
  if ((out.contradicted <= 2 && out.judged >= 8) || share < 0.02)
    blame(out, "line_learning_rate",
          lines_alone(out) + (shape_known && warmup_known && fit.shape.kind != Shape::wsd
                                  ? ": every other rate is as scheduled"
                                  : ": every other rate is in the range that the schedule leaves open"));
  else if (shape_known && warmup_known)
    blame_schedule(out, e, *schedule, places, stride);
  else
    blame(out, "rate_above_peak", "above the highest rate of the schedule");
  return out;
}

}  // namespace assay::spec::audit
