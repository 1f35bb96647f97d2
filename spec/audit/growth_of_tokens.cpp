#include "spec/audit/growth_of_tokens.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace assay::spec::audit {

std::optional<Interval> growth_of_tokens(const Evidence& e) {
  std::optional<Interval> out;
  std::size_t lines = 0;
  for (const Stretch& stretch : e.stretches) {
    const Step& first = *e.steps[stretch.begin];
    const auto &total = first[Field::tokens_total], &number = first[Field::step];
    for (std::size_t i = stretch.begin + 1; total && number && i < stretch.end; ++i) {
      const auto &here = (*e.steps[i])[Field::tokens_total], &step = (*e.steps[i])[Field::step];
      if (!here || !step || !(step->value > number->value)) return std::nullopt;
      const Interval grown = (wide(*here) - wide(*total)) * exact_interval(1 / (step->value - number->value));
      out = out ? Interval{std::max(out->low, grown.low), std::min(out->high, grown.high)} : grown;
      ++lines;
    }
  }
  // A count that is rounded to more than a step's tokens says nothing.
  if (lines < 2 || !(out->low > 0) || out->high < out->low || out->high > 1.5 * out->low) return std::nullopt;
  return out;
}

namespace {

struct CountedTokens {
  double step;
  const Printed* total;
};

Interval growth(const CountedTokens& from, const CountedTokens& to) {
  return (wide(*to.total) - wide(*from.total)) * exact_interval(1 / (to.step - from.step));
}

}  // namespace

std::optional<Interval> growth_of_most_tokens(const Evidence& e) {
  constexpr double alike = 1e-3;
  constexpr std::size_t enough = 4, lines_for_one = 10;
  std::vector<std::vector<CountedTokens>> stretches;
  std::vector<double> growths;
  std::size_t lines = 0;
  for (const Stretch& stretch : e.stretches) {
    std::vector<CountedTokens>& places = stretches.emplace_back();
    for (std::size_t i = stretch.begin; i < stretch.end; ++i) {
      const auto &total = (*e.steps[i])[Field::tokens_total], &step = (*e.steps[i])[Field::step];
      if (!total || !step || !std::isfinite(total->value) || !std::isfinite(step->value)) continue;
      if (!places.empty() && !(step->value > places.back().step)) return std::nullopt;
      places.push_back({step->value, &*total});
      if (places.size() > 1) growths.push_back(growth(places[places.size() - 2], places.back()).middle());
    }
    lines += places.size();
  }
  if (lines < enough || growths.empty()) return std::nullopt;
  std::nth_element(growths.begin(), growths.begin() + static_cast<std::ptrdiff_t>(growths.size() / 2),
                   growths.end());
  const double usual = growths[growths.size() / 2];
  if (!(usual > 0)) return std::nullopt;
  const auto agrees = [&](Interval each) {
    return each.low <= usual * (1 + alike) && each.high >= usual * (1 - alike);
  };
  Interval out = {usual * (1 - alike), usual * (1 + alike)};
  std::size_t alone = 0, judged = 0;
  for (const std::vector<CountedTokens>& places : stretches)
    for (std::size_t last = 0, i = 1; i < places.size(); ++i) {
      Interval each = growth(places[last], places[i]);
      if (!agrees(each)) {
        // The line alone is another, or the very first one.
        const bool first = last == 0 && i == 1;
        if (i + 1 < places.size() && agrees(growth(places[last], places[i + 1])))
          ++alone;
        else if (first && i + 1 < places.size() && agrees(growth(places[i], places[i + 1])))
          ++alone, last = i;
        else if (i + 1 == places.size())
          ++alone;  // the last: no line behind it says which
        else
          return std::nullopt;
        continue;
      }
      // A count that is rounded to as much as it grows by says little.
      if (each.low > 0 && each.high < 1.5 * each.low) {
        out = {std::max(out.low, each.low), std::min(out.high, each.high)};
        ++judged;
      }
      last = i;
    }
  if (judged + 1 < enough || alone * lines_for_one > lines + lines_for_one - 1) return std::nullopt;
  if (out.low > out.high) out = {usual * (1 - alike), usual * (1 + alike)};
  return out;
}

}  // namespace assay::spec::audit
