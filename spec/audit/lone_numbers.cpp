// Numbers of single lines that the lines around them, or the others of their line, deny.
#include <algorithm>
#include <cmath>
#include <span>

#include "spec/audit/groups.hpp"
#include "spec/audit/invariants.hpp"

namespace assay::spec::audit {
namespace {

/// A line's number and where it stands.
struct LoneNumber {
  std::size_t step;  // of Evidence::steps
  const Printed* number;
};

std::vector<LoneNumber> places_of(const Evidence& e, const Stretch& stretch, Field field) {
  std::vector<LoneNumber> out;
  for (std::size_t i = stretch.begin; i < stretch.end; ++i)
    if (const auto& number = (*e.steps[i])[field]; number && std::isfinite(number->value))
      out.push_back({i, &*number});
  return out;
}

std::int64_t line_of(const Evidence& e, const LoneNumber& place) {
  return place.number->line ? place.number->line : e.steps[place.step]->line;
}

struct Named {
  Field field;
  const char* name;
};

/// Counts that only rise. A single line below the line before it, or above the one behind it, where these two
/// rise: it alone is wrong, whichever way. A count that falls and stays lower may be a resumed run's.
void judge_counts(const Evidence& e, Result& out, Cause& cause) {
  constexpr std::size_t lines_for_one = 20;  // a number that goes up and down is no count
  for (const auto& [field, name] :
       {Named{Field::tokens_total, "tokens since the start"},
        Named{Field::sequences_total, "sequences since the start"}, Named{Field::epoch, "epochs"}}) {
    std::vector<std::pair<LoneNumber, Interval>> odd;
    std::size_t lines = 0;
    for (const Stretch& stretch : e.stretches) {
      const std::vector<LoneNumber> places = places_of(e, stretch, field);
      lines += places.size();
      for (std::size_t i = 1; i + 1 < places.size(); ++i) {
        const Printed &before = *places[i - 1].number, &after = *places[i + 1].number;
        const Interval here = wide(*places[i].number), between = {wide(before).low, wide(after).high};
        if (before.value < after.value && (here.high < between.low || here.low > between.high))
          odd.emplace_back(places[i], between);
      }
    }
    if (odd.size() * lines_for_one > lines + lines_for_one - 1) continue;
    for (const auto& [place, between] : odd) {
      contradict(out, place.number->value, between, line_of(e, place));
      if (cause.id.empty())
        cause = {"count_of_a_line", std::string(name) + " leave the counts of the lines before and behind, " +
                                        shown(between.low, Unit::none) + " and " +
                                        shown(between.high, Unit::none) + ": this line's alone is wrong"};
    }
  }
}

/// The median of those above 0; 0 where they are not three quarters of all.
double usual(const Evidence& e, Field field) {
  std::vector<double> above;
  std::size_t all = 0;
  for (const Step* step : e.steps)
    if (const auto& number = (*step)[field]; number && std::isfinite(number->value)) {
      ++all;
      if (number->value > 0) above.push_back(number->value);
    }
  if (above.empty() || 4 * above.size() < 3 * all) return 0;
  const auto middle = above.begin() + static_cast<std::ptrdiff_t>(above.size() / 2);
  std::nth_element(above.begin(), middle, above.end());
  return *middle;
}

/// A rate of 0 is of no work, and a time of 0 has no rate: where another number that the same time makes
/// stands beside it, one is wrong. Not on the first lines of a start, which some trainers print before they
/// measured, nor where the usual number is near what may be printed as 0.
void judge_zeros(const Evidence& e, Result& out, Cause& cause) {
  constexpr double far = 10;
  constexpr Named measured[] = {{Field::seconds, "a step time"},
                                {Field::tokens_per_second, "tokens/s"},
                                {Field::flops_rate, "FLOP/s"},
                                {Field::sequences_per_second, "sequences/s"},
                                {Field::gpu_tokens_per_second, "tokens/s of one GPU"},
                                {Field::mfu, "MFU"}};
  for (const Named& of : std::span(measured).first(5)) {
    const Field field = of.field;
    const double most = usual(e, field) / far;
    if (!(most > 0)) continue;
    for (const Stretch& stretch : e.stretches)
      for (std::size_t i = first_measured(e, stretch, field); i < stretch.end; ++i) {
        const Step& step = *e.steps[i];
        const auto& zero = step[field];
        if (!zero || zero->value != 0 || !(wide(*zero).high < most)) continue;
        const auto other = std::find_if(std::begin(measured), std::end(measured), [&](const Named& one) {
          const auto& number = step[one.field];
          return one.field != field && e.averaged(one.field) == e.averaged(field) && number &&
                 wide(*number).low > 0 && std::isfinite(number->value);
        });
        if (other == std::end(measured)) continue;
        contradict(out, 0, {most, 1e300}, zero->line ? zero->line : step.line);
        if (cause.id.empty())
          cause = {"zero_of_a_line", std::string(of.name) + " of 0 beside " + other->name +
                                         " above 0: no work takes no time, and none is done at no speed"};
      }
  }
}

}  // namespace

std::size_t first_measured(const Evidence& e, const Stretch& stretch, Field field) {
  std::size_t zeros = 0, all = 0, first = stretch.begin;
  for (std::size_t i = stretch.begin; i < stretch.end; ++i)
    if (const auto& number = (*e.steps[i])[field]) {
      if (number->value == 0 && zeros == all) ++zeros, first = i + 1;
      ++all;
    }
  return 2 * zeros <= all ? std::max(first, stretch.begin + 1) : stretch.begin + 1;
}

Cause judge_lone_numbers(const Evidence& e, Result& out) {
  Cause cause;
  judge_counts(e, out, cause);
  judge_zeros(e, out, cause);
  return cause;
}

/// Chosen: ten times what lies between the rates around it, and a twentieth less for schedules that bend, or
/// less than a hundredth of both, where these two are within a factor of two. A schedule that begins again
/// (cosine restarts, a resume) leaves neighbours that differ, or does so more than once; a rate of 0 is that
/// of a step whose schedule has not begun.
std::optional<Result> judge_lone_rate(const Evidence& e) {
  constexpr double above = 9.5, below = 100, near = 2;
  constexpr std::size_t enough = 8;
  std::vector<std::pair<LoneNumber, Interval>> odd;
  std::size_t lines = 0;
  for (const Stretch& stretch : e.stretches) {
    const std::vector<LoneNumber> places = places_of(e, stretch, Field::learning_rate);
    lines += places.size();
    for (std::size_t i = 1; i + 1 < places.size(); ++i) {
      const Interval before = wide(*places[i - 1].number), here = wide(*places[i].number),
                     after = wide(*places[i + 1].number);
      const double least = std::min(before.low, after.low), most = std::max(before.high, after.high);
      if (!(least > 0) || most > near * least || !(here.low > 0)) continue;
      const bool restarted =
          std::any_of(e.record.restarts.begin(), e.record.restarts.end(), [&](const Restart& r) {
            return r.line > e.steps[places[i - 1].step]->line && r.line <= e.steps[places[i + 1].step]->line;
          });
      const double between = (before.middle() + after.middle()) / 2;
      if (!restarted && (here.low > above * between || here.high < least / below))
        odd.emplace_back(places[i], Interval{least, most});
    }
  }
  if (odd.empty() || odd.size() > 2 || lines < enough) return std::nullopt;
  Result out = holding(static_cast<std::int64_t>(lines));
  for (const auto& [place, around] : odd) contradict(out, place.number->value, around, line_of(e, place));
  blame(out, "line_learning_rate",
        lines_alone(out) + ": the rates of the lines before and behind lie within a factor of two");
  return out;
}

}  // namespace assay::spec::audit
