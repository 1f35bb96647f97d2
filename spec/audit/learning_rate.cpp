#include <algorithm>
#include <cctype>
#include <cmath>
#include <numbers>

#include "spec/audit/groups.hpp"
#include "spec/audit/relations.hpp"
#include "spec/text/quantity.hpp"
#include "spec/text/quote.hpp"

namespace assay::spec::audit {
namespace {

/// A schedule as trainers write it: linear rise, a fall of some shape. Trainers number steps from 0 or 1, in
/// the rise and in the fall, divide the rise by the warm-up or one more, and count the fall's length from the
/// rise's end or from the start.
struct Shape {
  enum Kind {
    constant,
    linear,
    cosine,
    inverse_root,
    wsd,  ///< a plateau whose end is not stated
    wsd_linear,
    wsd_cosine,
    wsd_exponential,
    wsd_root
  } kind = constant;
  double peak = 0, least = 0, most_least = 0;  ///< the lowest rate; a range where it is not stated
  double warmup = 0, divisor = 1, end = 1, length = 1;
  double decay = 0;                         ///< of wsd: steps from the plateau's end to `end`
  double rise_offset = 0, fall_offset = 0;  ///< added to the printed step
  double step_factor = 1;                   ///< schedule steps per optimizer step
  double shift = 0;                         ///< of the fall, in schedule steps
  double start = 0, most_start = 0;         ///< the rate where the rise begins; a range likewise
};

/// What is left of the rise at share `x` of the decay that ends a wsd schedule: Megatron-LM,
/// optimizer_param_scheduler.py; llm.c, schedulers.h (1 - root).
double left_of_wsd(Shape::Kind kind, double x) {
  switch (kind) {
    case Shape::wsd_linear:
      return 1 - x;
    case Shape::wsd_cosine:
      return (1 + std::cos(std::numbers::pi * x)) / 2;
    case Shape::wsd_exponential:
      return 2 * std::exp2(-x) - 1;
    default:
      return 1 - std::sqrt(x);
  }
}

/// Where a rate was printed.
struct Place {
  double step;  ///< or the sequences since the start, of a schedule that goes by these
  const Printed* rate;
  std::int64_t line;
  double unit = 1;    ///< of one step
  double number = 0;  ///< of the step
};

/// The interval of rates that the shape allows at a place; wsd leaves its plateau's end open.
Interval rate(const Shape& s, const Place& at) {
  const double u = (at.step + s.rise_offset * at.unit) * s.step_factor;
  if (u <= s.warmup && s.warmup > 0) {
    const double risen = std::max(0.0, u) / s.divisor;
    return {s.start + (s.peak - s.start) * risen, s.most_start + (s.peak - s.most_start) * risen};
  }
  const double v = (at.step + s.fall_offset * at.unit) * s.step_factor + s.shift;
  const double x = s.length > 0 ? std::clamp((v - s.warmup) / s.length, 0.0, 1.0) : 1;
  const double fallen = s.kind == Shape::linear ? x : (1 - std::cos(std::numbers::pi * x)) / 2;
  switch (s.kind) {
    case Shape::constant:
      return exact_interval(s.peak);
    case Shape::wsd:
      return {s.least, s.peak};
    case Shape::inverse_root: {
      const double root = s.peak * std::sqrt(std::max(s.warmup, 1.0) / std::max(v, 1.0));
      // Megatron-LM falls to the lowest rate where its decay ends, others go on.
      return {s.end > 0 && v > s.end ? s.least : std::max(s.least, root), std::max(s.most_least, root)};
    }
    case Shape::wsd_linear:
    case Shape::wsd_cosine:
    case Shape::wsd_exponential:
    case Shape::wsd_root: {
      const double left = left_of_wsd(s.kind, std::clamp((v - (s.end - s.decay)) / s.decay, 0.0, 1.0));
      return {s.least + left * (s.peak - s.least), s.most_least + left * (s.peak - s.most_least)};
    }
    default:
      return {s.peak + (s.least - s.peak) * fallen, s.peak + (s.most_least - s.peak) * fallen};
  }
}

bool agrees(const Printed& printed, Interval expected) {
  const Interval shown = wide(printed);
  // Rates pass through single precision in some trainers.
  const double slack = 2e-7 * std::abs(printed.value) + 1e-15;
  return shown.low - slack <= expected.high && expected.low <= shown.high + slack;
}

std::size_t misses(const Shape& shape, const std::vector<Place>& places, std::size_t stride,
                   std::size_t stop) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < places.size(); i += stride)
    if (!agrees(*places[i].rate, rate(shape, places[i])) && ++count >= stop) break;
  return count;
}

struct Stated {
  double peak, warmup;
  std::vector<double> ends;
  double least = 0, most_least = 0, decay = 0;
  std::vector<Shape::Kind> kinds;
  double start = 0, most_start = 0;
};

/// Whether the schedule goes by the sequences since the start.
bool by_samples(const Evidence& e) { return e.record[Setting::train_samples].has_value(); }
Setting warmup_setting(const Evidence& e) {
  return by_samples(e) ? Setting::warmup_samples : Setting::warmup_steps;
}

/// The shapes that a trainer's word for its schedule may mean; none for a word that is not known here.
/// `cosine_only`: of a trainer that has one schedule and does not name it.
std::vector<Shape::Kind> kinds_of(const std::string& schedule, bool decay_known, bool cosine_only) {
  std::string name;
  for (const char c : schedule)
    name += c == '_' || c == ' ' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (const std::size_t warmup = name.find("-with-warmup"); warmup != std::string::npos) name.erase(warmup);
  if (name.empty() && cosine_only) return {Shape::cosine, Shape::linear, Shape::constant};
  if (name.empty()) return {Shape::cosine, Shape::linear, Shape::constant, Shape::inverse_root, Shape::wsd};
  if (name == "constant") return {Shape::constant};
  if (name == "linear") return {Shape::linear};
  if (name == "cosine" || name == "cosine-with-min-lr") return {Shape::cosine};
  if (name == "inverse-square-root" || name == "inverse-sqrt") return {Shape::inverse_root};
  if (name != "wsd" && name != "warmup-stable-decay") return {};
  if (!decay_known) return {Shape::wsd};
  return {Shape::wsd_linear, Shape::wsd_cosine, Shape::wsd_exponential, Shape::wsd_root};
}

std::optional<Stated> stated(const Evidence& e) {
  const auto& r = e.record;
  if (!r[Setting::learning_rate] || !(r[Setting::learning_rate]->value > 0)) return std::nullopt;
  const std::string& trainer = r.format.name;
  const bool cosine_only =
      trainer.starts_with("llm_tii") || trainer == "nanogpt" || trainer == "llmq" || trainer == "assay";
  const std::vector<Setting> end_settings = by_samples(e)
                                                ? std::vector{Setting::decay_samples}
                                                : std::vector{Setting::decay_steps, Setting::max_steps};
  const bool ends = std::any_of(end_settings.begin(), end_settings.end(),
                                [&](Setting setting) { return r[setting].has_value(); });
  const auto& last = r[by_samples(e) ? Setting::wsd_decay_samples : Setting::wsd_decay_steps];
  double decay = usable(last) && ends ? last->value : 0;
  // llm.c, schedulers.h: the last fifth of the run.
  if (const auto& most = r[Setting::max_steps]; trainer == "llmc" && most)
    decay = most->value - std::floor(0.8 * most->value);
  Stated out{
      r[Setting::learning_rate]->value, 0, {}, 0, 0, decay, kinds_of(r.schedule, decay > 0, cosine_only)};
  if (const auto& warmup = r[warmup_setting(e)]) out.warmup = warmup->value;
  if (const auto& start = r[Setting::learning_rate_start])
    out.start = start->low, out.most_start = start->high;
  if (r[Setting::learning_rate_min])
    out.least = out.most_least = r[Setting::learning_rate_min]->value;
  else
    out.most_least = 0.5 * out.peak;
  for (const Setting setting : end_settings)
    if (r[setting] && r[setting]->value > 0)
      if (const double end = r[setting]->value; out.ends.empty() || out.ends.front() != end)
        out.ends.push_back(end);
  // A stated end of the decay is the end; the number of steps stands in only where none is stated.
  if (out.ends.size() > 1) out.ends.pop_back();
  return out;
}

/// The shape with fewest misses, by every `stride`th place, among the ways of numbering. Coarse digits let
/// several agree there: of those the one that agrees best everywhere; stops at the first without any miss.
struct Fit {
  Shape shape;
  std::size_t misses = static_cast<std::size_t>(-1);
};

Fit best_fit(const Stated& s, double step_factor, const std::vector<Place>& places, std::size_t stride) {
  Fit best;
  std::vector<double> ends;
  for (const double end : s.ends)
    for (const double shift : {0.0, -1.0, 1.0}) ends.push_back(end + shift);
  if (ends.empty()) ends = {0};
  std::size_t fewest = static_cast<std::size_t>(-1);
  const auto try_shape = [&](const Shape& shape) {
    const std::size_t count = misses(shape, places, stride, best.misses + (best.misses == 0));
    if (count > 0 && count < best.misses) best = {shape, count};
    if (count > 0) return false;
    const std::size_t everywhere = misses(shape, places, 1, fewest);
    if (everywhere < fewest) best = {shape, 0}, fewest = everywhere;
    return fewest == 0;
  };
  for (const Shape::Kind kind : s.kinds)
    for (const double end : ends)
      for (const double from : {s.warmup, 0.0})
        for (const double rise : {1.0, 0.0, -1.0})
          for (const double fall : {1.0, 0.0, -1.0})
            for (const double extra : {0.0, 1.0})
              for (const double shift : {0.0, -1.0}) {
                if (shift != 0 && step_factor == 1) continue;
                if (try_shape({kind, s.peak, s.least, s.most_least, s.warmup, s.warmup + extra, end,
                               end - from, s.decay, rise, fall, step_factor, shift, s.start, s.most_start}))
                  return best;
              }
  return best;
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
  if (explains(with([](Stated& o) { o.least = 0, o.most_least = 0.5 * o.peak; })))
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

/// Steps before the first line of a log without its beginning, of a trainer that leaves out steps whose
/// gradients overflow: any of them may have been left out. More than `most_lost` are not tried.
double lost_steps(const Evidence& e, const std::vector<Place>& places) {
  const bool leaves_out = e.record.dtype == "fp16" ||
                          std::any_of(e.steps.begin(), e.steps.end(),
                                      [](const Step* step) { return (*step)[Field::skipped].has_value(); });
  if (!leaves_out || places.size() < 2) return 0;
  return std::max(0.0, (places[0].step - (places[1].step - places[0].step)) / places[0].unit);
}
constexpr double most_lost = 100;

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

Result judge_learning_rate(const Evidence& e) {
  std::vector<Place> places;
  // Some trainers' schedules wait for a step that was left out, others go on.
  std::vector<double> waited;
  double left_out = 0;
  const Field counter = by_samples(e) ? Field::sequences_total : Field::step;
  for (const Step* step : e.steps) {
    if (const auto& skipped = (*step)[Field::skipped])
      left_out = skipped->value;
    else if (const auto& norm = (*step)[Field::gradient_norm]; norm && !std::isfinite(norm->value))
      ++left_out;
    const auto& batch = (*step)[Field::step_sequences];
    if (by_samples(e) && !usable(batch)) continue;
    if (const auto& n = (*step)[counter], &r = (*step)[Field::learning_rate];
        n && r && std::isfinite(r->value))
      places.push_back({n->value, &*r, r->line ? r->line : step->line, by_samples(e) ? batch->value : 1,
                        (*step)[Field::step] ? (*step)[Field::step]->value : 0}),
          waited.push_back(left_out);
  }
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
  const auto allowed = [&](const Place& at) {
    return shape_known && warmup_known ? rate(fit.shape, at) : Interval{0, schedule->peak};
  };
  out.note =
      shape_known && warmup_known ? "" : "no more than the highest rate; the schedule is not stated in full";
  for (const Place& place : places) {
    const Interval expected = allowed(place);
    if (out.verdict != Verdict::contradicts) out.printed = place.rate->value, out.recomputed = expected;
    if (!agrees(*place.rate, expected)) contradict(out, place.rate->value, expected, place.line);
  }
  if (out.verdict != Verdict::contradicts) return out;
  const double share = static_cast<double>(out.contradicted) / static_cast<double>(out.judged);
  if ((out.contradicted <= 2 && out.judged >= 8) || share < 0.02)
    blame(out, "line_learning_rate", lines_alone(out) + ": every other rate is as scheduled");
  else if (shape_known && warmup_known)
    blame_schedule(out, e, *schedule, places, stride);
  else
    blame(out, "rate_above_peak", "above the highest rate of the schedule");
  return out;
}

bool schedule_known(const std::string& schedule) {
  return !schedule.empty() && !kinds_of(schedule, false, false).empty();
}

}  // namespace assay::spec::audit
