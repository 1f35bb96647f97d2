// Shares of which nobody says whether each is of its step or a running mean: the lines tell.
#include <algorithm>

#include "spec/audit/running_mean.hpp"

namespace assay::spec::audit {

/// Single numbers, unless these share no factor, and those that nanoGPT's mean was formed of do (train.py,
/// running_mfu, which tables of its numbers hold). Of few lines, or of few digits, any may.
void Means::by_its_lines() {
  constexpr RunningMean nanogpt{0.9, false, true};
  constexpr std::size_t few = 4;      // chosen
  constexpr double few_digits = 0.1;  // of the width of a ratio: another mean of these lines may fit. Chosen
  const std::vector<Interval> alone = ranges_of(this->alone());
  if (shared_factor(alone).ratios < alone.size()) {
    usual_ = std::max(e_.line_distance, 1.0);
    find_beginnings();
    const Ratios ratios = of_mean(nanogpt, std::nullopt);
    const std::vector<Interval> of_mean = ranges_of(ratios);
    const bool told = std::all_of(of_mean.begin(), of_mean.end(), [](const Interval& ratio) {
      return ratio.high <= ratio.low * (1 + few_digits);
    });
    if (told && of_mean.size() >= few && shared_factor(of_mean).ratios == of_mean.size()) {
      to_.mean = "a running mean of the lines, 0.9 x the one before + 0.1 x its own";
      return add_all(ratios);
    }
  }
  for (const Line& line : lines_)
    add_sample(to_, *line.printed, line.made, static_cast<std::int64_t>(line.step), line.likely);
}

}  // namespace assay::spec::audit
