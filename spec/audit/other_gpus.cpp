#include "spec/audit/other_gpus.hpp"

#include <algorithm>

namespace assay::spec::audit {
namespace {

/// Between the lines before sample `border` and those from it on.
bool rate_changes(const Evidence& e, const std::vector<const Sample*>& samples, std::size_t border) {
  const auto rates = [&](std::size_t begin, std::size_t end) {
    std::vector<double> out;
    for (std::size_t i = end - begin > 1 ? begin + 1 : begin; i < end; ++i)
      if (const auto& rate = (*e.steps[static_cast<std::size_t>(samples[i]->step)])[Field::tokens_per_second];
          usable(rate))
        out.push_back(rate->value);
    std::sort(out.begin(), out.end());
    return out;
  };
  const std::vector<double> before = rates(0, border), after = rates(border, samples.size());
  if (before.empty() || after.empty()) return false;
  double faster = 0, slower = 0;
  for (const double a : before)
    for (const double b : after) faster += b > a ? 1 : 0, slower += b < a ? 1 : 0;
  const double most = 0.9 * static_cast<double>(before.size()) * static_cast<double>(after.size());
  const double times = after[after.size() / 2] / before[before.size() / 2];
  return (faster >= most && times > 1.05) || (slower >= most && times < 1 / 1.05);
}

}  // namespace

bool changes_with_rate(const Evidence& e, const std::vector<const Sample*>& samples, const Shared& most,
                       const Shared& others) {
  const auto all_meet = [&](std::size_t begin, std::size_t end, const Interval& factor) {
    return std::all_of(samples.begin() + static_cast<std::ptrdiff_t>(begin),
                       samples.begin() + static_cast<std::ptrdiff_t>(end),
                       [&](const Sample* s) { return s->ratio.meets(factor); });
  };
  const auto changes_at = [&](std::size_t border, const Shared& before, const Shared& after) {
    return all_meet(0, border, before.factor) && all_meet(border, samples.size(), after.factor) &&
           rate_changes(e, samples, border);
  };
  return most.ratios + others.ratios == samples.size() &&
         (changes_at(most.ratios, most, others) || changes_at(others.ratios, others, most));
}

}  // namespace assay::spec::audit
