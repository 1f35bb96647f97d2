#include "spec/audit/loss_scatter.hpp"

#include <algorithm>
#include <cmath>

namespace assay::spec::audit {

double middle_loss(std::vector<double> numbers) {
  if (numbers.empty()) return 0;
  const auto middle = numbers.begin() + static_cast<std::ptrdiff_t>(numbers.size() / 2);
  std::nth_element(numbers.begin(), middle, numbers.end());
  return *middle;
}

std::optional<LossCourse> loss_course(const Evidence& e, std::size_t begin, std::size_t end,
                                      std::size_t fewest) {
  std::vector<double> differences, roundings;
  const Printed* before = nullptr;
  for (std::size_t i = begin; i < end; ++i) {
    const auto& loss = (*e.steps[i])[Field::loss];
    if (!loss || !std::isfinite(loss->value)) continue;
    if (before) {
      differences.push_back(loss->value - before->value);
      roundings.push_back((loss->high - loss->low + before->high - before->low) / 2);
    }
    before = &*loss;
  }
  if (differences.empty() || differences.size() < fewest) return std::nullopt;
  const double trend = middle_loss(differences);
  for (std::size_t i = 0; i < differences.size(); ++i)
    differences[i] = std::abs(differences[i] - trend) + roundings[i];
  return LossCourse{trend, middle_loss(std::move(differences))};
}

}  // namespace assay::spec::audit
