// Running means of lines in an excerpt: the lines between two that are shown went into the mean as well.
#include <algorithm>
#include <cmath>

#include "spec/audit/running_mean.hpp"
#include "spec/audit/unlogged_steps.hpp"

namespace assay::spec::audit {
namespace {

/// More lines than that leave nothing of the mean before them that its digits show: 0.9^60 is 0.002.
constexpr double most_between = 60;

}  // namespace

/// What a line's step makes, of every other line but those of steps that took twice as long as most: no
/// further outside these than they lie apart, and a tenth where they are few.
Interval Means::made_by_others(std::size_t line) const {
  std::vector<Interval> others;
  others.reserve(lines_.size());
  for (std::size_t k = 0; k < lines_.size(); ++k)
    if (k != line) others.push_back(lines_[k].made);
  std::vector<double> middles;
  middles.reserve(others.size());
  for (const Interval& made : others) middles.push_back(made.middle());
  std::sort(middles.begin(), middles.end());
  const double usual = middles[middles.size() / 2];
  std::erase_if(others, [&](const Interval& made) { return 2 * made.middle() < usual; });
  const Interval seen = hull(others);
  const double open = others.size() < fewest_to_tell ? told_by_few : 0, spread = apart(others);
  return {std::max(0.0, seen.low * (1 - open) - spread), seen.high * (1 + open) + spread};
}

/// As if `between` lines more had been formed since the line before; `stalled`: one of them of a step that
/// took very long, as an evaluation does.
Means::Ratio Means::with_lines_between(const Known& before, const Line& line, const Interval& others,
                                       const RunningMean& mean, double between, bool stalled) {
  const double old = std::pow(mean.keep, between + 1), rest = mean.keep - old;
  Interval fresh = line.made * exact_interval(1 - mean.keep) + others * exact_interval(rest);
  if (stalled) fresh.low -= std::min(rest, mean.keep * (1 - mean.keep)) * others.low;
  const Interval shown = wide(*line.printed) - before.numbers * exact_interval(old);
  const double likely = line.likely * (1 - mean.keep) + others.middle() * rest;
  return {{std::max(shown.low, 1e-9) / fresh.high, std::max(shown.high, 1e-9) / fresh.low},
          (line.printed->value - before.likely * old) / likely};
}

std::optional<Means::Ratio> Means::left_out_before(std::size_t k, const Chain& chain, const RunningMean& mean,
                                                   const Interval& factor) const {
  const auto &last = (*e_.steps[lines_[chain.last].step])[Field::step],
             &here = (*e_.steps[lines_[k].step])[Field::step];
  if (!mean.of_lines || !chain.shown.known || !last || !here || lines_.size() < 3) return std::nullopt;
  const double most = std::min(here->value - last->value - 1, most_between);
  const Interval others = made_by_others(k);
  // A time that no other line has is wrong, unless it is an evaluation's: at the least twice as long.
  if (!lines_[k].made.meets(others) && !(2 * lines_[k].made.high < others.low)) return std::nullopt;
  for (double between = 1; between <= most; ++between)
    if (const Ratio ratio = with_lines_between(chain.shown, lines_[k], others, mean, between, false);
        ratio.range.meets(factor))
      return ratio;
  // A fall that the lines behind go on from: a step that no line shows took long, this one as long as ever.
  if (!lines_[k].made.meets(others) ||
      (k + 1 < lines_.size() && !begins_[k + 1] && !goes_on(k, mean, factor)))
    return std::nullopt;
  for (double between = 1; between <= most; ++between)
    if (const Ratio ratio = with_lines_between(chain.shown, lines_[k], others, mean, between, true);
        ratio.range.meets(factor))
      return ratio;
  return std::nullopt;
}

/// Whether the line behind is formed of the mean that line `k` prints.
bool Means::goes_on(std::size_t k, const RunningMean& mean, const Interval& factor) const {
  const Known shown{wide(*lines_[k].printed), lines_[k].printed->value, true};
  const Interval others = made_by_others(k + 1);
  const double distance = std::max(1.0, (*e_.steps[lines_[k + 1].step])[Field::step]->value -
                                            (*e_.steps[lines_[k].step])[Field::step]->value);
  for (double between = 0; between < std::min(distance, most_between); ++between)
    if (with_lines_between(shown, lines_[k + 1], others, mean, between, false).range.meets(factor))
      return true;
  return false;
}

}  // namespace assay::spec::audit
