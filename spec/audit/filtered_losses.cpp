#include "spec/audit/filtered_losses.hpp"

#include <algorithm>
#include <cmath>

namespace assay::spec::audit {
namespace {

/// What the loss before the zeros is at least: a hundred times the largest that is printed as 0.0, half of
/// the Trainer's fourth digit. From there, no training comes to nothing in one line. Chosen. [nats]
constexpr double far_from_nothing = 100 * 5e-5;
/// Where every line is such a zero: one may be a first batch that is known, and its gradient overflowed.
constexpr std::size_t fewest_without_loss = 2;

bool is_zero(const Step& step) { return step[Field::loss] && step[Field::loss]->value == 0; }

bool gradient_is_no_number(const Step& step) {
  const auto& norm = step[Field::gradient_norm];
  return norm && !std::isfinite(norm->value);
}

}  // namespace

std::size_t first_filtered_loss(const Evidence& e) {
  const std::size_t none = e.steps.size();
  // Of rewards, a loss is about 0 by itself.
  if (!e.trainer.leaves_out_nan_losses || !e.record.objective.empty()) return none;
  std::size_t first = none;
  for (; first > 0 && is_zero(*e.steps[first - 1]) && gradient_is_no_number(*e.steps[first - 1]); --first) {
  }
  const auto before = e.steps.begin() + static_cast<std::ptrdiff_t>(first);
  const bool prints_zeros = std::any_of(e.steps.begin(), before, [](const Step* step) {
    return is_zero(*step) && !gradient_is_no_number(*step);
  });
  if (prints_zeros) return none;
  for (std::size_t i = first; i > 0; --i) {
    const auto& loss = (*e.steps[i - 1])[Field::loss];
    if (loss && loss->value != 0 && std::isfinite(loss->value))
      return loss->low >= far_from_nothing ? first : none;
  }
  return none - first >= fewest_without_loss ? first : none;
}

}  // namespace assay::spec::audit
