#include "spec/audit/rate_schedule.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <numbers>

namespace assay::spec::audit {
namespace rate_schedule {
namespace {

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
  if (name == "wsd-linear") return {decay_known ? Shape::wsd_linear : Shape::wsd};
  if (name == "wsd-1-sqrt") return {decay_known ? Shape::wsd_root : Shape::wsd};
  if (name != "wsd" && name != "warmup-stable-decay") return {};
  if (!decay_known) return {Shape::wsd};
  return {Shape::wsd_linear, Shape::wsd_cosine, Shape::wsd_exponential, Shape::wsd_root};
}

/// Some trainers make rates in single precision: of three operations, each off by 2^-24 at most.
Interval possible(const Printed& printed) {
  const Interval shown = wide(printed);
  const double slack = 3 * 0x1p-24 * std::abs(printed.value) + 1e-15;
  return {shown.low - slack, shown.high + slack};
}

/// Where it is not said at which rate the rise begins, it is one that serves the line `at` of it.
Shape begun_as(Shape s, const Place& at) {
  if (at.untold > 0) return s;
  const double u = place_in_rise(s, at), risen = std::max(0.0, u) / s.divisor;
  if (!(s.start < s.most_start) || u > s.warmup || risen >= 1) return s;
  const Interval shown = possible(*at.rate);
  const auto start = [&, from = s.start, to = s.most_start](double rate) {
    return std::clamp((rate - s.peak * risen) / (1 - risen), from, to);
  };
  const double low = start(shown.low), high = start(shown.high);
  s.start = low, s.most_start = high;
  return s;
}

}  // namespace

double place_in_rise(const Shape& s, const Place& at, double lag) {
  return (at.step + (s.rise_offset - lag) * at.unit) * s.step_factor;
}

Interval rate(const Shape& s, const Place& at) {
  if (at.untold > 0) {
    Place last = at, first = at;
    last.untold = first.untold = 0;
    first.step -= at.untold * at.unit;
    const Interval late = rate(s, last), early = rate(s, first);
    // The rates rise up to the warm-up's end, and fall behind it.
    const bool over_the_top = place_in_rise(s, first) <= s.warmup && place_in_rise(s, last) >= s.warmup;
    return {std::min(late.low, early.low), std::max({late.high, early.high, over_the_top ? s.peak : 0})};
  }
  const double u = place_in_rise(s, at);
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

/// Of which size those were that were left out while the batch grew is not said.
bool in_one_order(const std::vector<Place>& places) {
  return std::any_of(places.begin(), places.end(), [](const Place& at) { return at.untold > 0; }) &&
         std::all_of(places.begin(), places.end(),
                     [&](const Place& at) { return at.unit == places.front().unit; });
}

bool agrees(const Printed& printed, Interval expected) { return possible(printed).meets(expected); }

std::size_t misses(const Shape& shape, const std::vector<Place>& places, std::size_t stride,
                   std::size_t stop) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < places.size(); i += stride)
    if (!agrees(*places[i].rate, rate(shape, places[i])) && ++count >= stop) break;
  return count;
}

bool by_samples(const Evidence& e) { return e.record[Setting::train_samples].has_value(); }
Setting warmup_setting(const Evidence& e) {
  return by_samples(e) ? Setting::warmup_samples : Setting::warmup_steps;
}

std::optional<Stated> stated(const Evidence& e) {
  const auto& r = e.record;
  if (!r[Setting::learning_rate] || !(r[Setting::learning_rate]->value > 0)) return std::nullopt;
  const bool says_all = e.trainer.prints_all_settings;
  const std::vector<Setting> end_settings = by_samples(e) ? std::vector{Setting::decay_samples}
                                            : says_all
                                                ? std::vector{Setting::decay_steps}
                                                : std::vector{Setting::decay_steps, Setting::max_steps};
  const bool ends = std::any_of(end_settings.begin(), end_settings.end(),
                                [&](Setting setting) { return r[setting].has_value(); });
  const auto& last = r[by_samples(e) ? Setting::wsd_decay_samples : Setting::wsd_decay_steps];
  double decay = usable(last) && ends ? last->value : 0;
  if (const auto& most = r[Setting::max_steps]; e.trainer.decay_begins > 0 && most)
    decay = most->value - std::floor(e.trainer.decay_begins * most->value);
  Stated out{r[Setting::learning_rate]->value,
             0,
             {},
             0,
             0,
             decay,
             kinds_of(r.schedule, decay > 0, e.trainer.only_cosine)};
  out.numbering_known = e.trainer.numbering_known;
  if (const auto& warmup = r[warmup_setting(e)]) out.warmup = warmup->value;
  if (const auto& start = r[Setting::learning_rate_start])
    out.start = start->low, out.most_start = start->high;
  else if (says_all)
    out.most_start = out.peak;
  if (r[Setting::learning_rate_min])
    out.least = out.most_least = r[Setting::learning_rate_min]->value;
  else
    out.most_least = says_all ? out.peak : 0.5 * out.peak;
  for (const Setting setting : end_settings)
    if (r[setting] && r[setting]->value > 0)
      if (const double end = r[setting]->value; out.ends.empty() || out.ends.front() != end)
        out.ends.push_back(end);
  // A stated end of the decay is the end; the number of steps stands in only where none is stated.
  if (out.ends.size() > 1) out.ends.pop_back();
  return out;
}

Fit best_fit(const Stated& s, double step_factor, const std::vector<Place>& places, std::size_t stride) {
  Fit best;
  std::vector<double> ends;
  const bool known = s.numbering_known;
  const std::vector<double> offsets = known ? std::vector{0.0} : std::vector{1.0, 0.0, -1.0},
                            begun = known ? std::vector{s.warmup} : std::vector{s.warmup, 0.0},
                            more = known ? std::vector{0.0} : std::vector{0.0, 1.0};
  for (const double end : s.ends)
    for (const double shift : known ? std::vector{0.0} : std::vector{0.0, -1.0, 1.0})
      ends.push_back(end + shift);
  if (ends.empty()) ends = {0};
  const std::size_t begins = s.start < s.most_start ? 2 : 1;
  std::size_t fewest = static_cast<std::size_t>(-1);
  const bool one_order = in_one_order(places);
  const auto try_shape = [&](const Shape& shape) {
    std::size_t count = misses(shape, places, stride, best.misses + (best.misses == 0));
    if (count == 0 && one_order && !lags_in_order(shape, places, stride)) count = 1;
    if (count > 0 && count < best.misses) best = {shape, count};
    if (count > 0) return false;
    std::size_t everywhere = misses(shape, places, 1, fewest);
    if (everywhere == 0 && one_order && !lags_in_order(shape, places, 1)) everywhere = 1;
    if (everywhere < fewest) best = {shape, 0}, fewest = everywhere;
    return fewest == 0;
  };
  for (const Shape::Kind kind : s.kinds)
    for (const double end : ends)
      for (const double from : begun)
        for (const double rise : offsets)
          for (const double fall : offsets)
            for (const double extra : more)
              for (const double shift : {0.0, -1.0}) {
                if (shift != 0 && step_factor == 1) continue;
                const Shape shape{kind,  s.peak,     s.least,     s.most_least, s.warmup, s.warmup + extra,
                                  end,   end - from, s.decay,     rise,         fall,     step_factor,
                                  shift, s.start,    s.most_start};
                // Its first line may be the one that is wrong.
                for (std::size_t i = 0; i < std::min<std::size_t>(begins, places.size()); ++i)
                  if (try_shape(begun_as(shape, places[i]))) return best;
              }
  return best;
}

}  // namespace rate_schedule

bool schedule_known(const std::string& schedule) {
  return !schedule.empty() && !rate_schedule::kinds_of(schedule, false, false).empty();
}

}  // namespace assay::spec::audit
