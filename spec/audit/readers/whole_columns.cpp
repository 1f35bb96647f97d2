#include "spec/audit/readers/whole_columns.hpp"

#include <algorithm>
#include <cmath>

#include "spec/audit/trainer.hpp"

namespace assay::spec::audit {
namespace {

/// Its last digit is a 0: printed to a tenth of some unit (the reader's, so that ms are 0.001), and whole. Of
/// few units the last digit says too much to be given up: at least a hundred, 0.5 %.
bool is_whole_with_a_decimal(const Printed& number) {
  constexpr double units_of_half = 20, least = 100;
  const double unit = units_of_half * (number.high - number.low) / 2;
  if (!(unit > 0) || !std::isfinite(number.value)) return false;
  const double units = number.value / unit;
  constexpr double rounding = 1e-6;
  return std::abs(units) >= least && std::abs(units - std::round(units)) <= rounding * std::abs(units);
}

}  // namespace

void widen_whole_columns(RunRecord& run) {
  if (!trainer_of(run).rounded_by_others) return;
  for (const Field field : {Field::tokens_per_second, Field::flops_rate}) {
    std::size_t there = 0, whole = 0;
    for (const Step& step : run.steps)
      if (const auto& number = step[field]) {
        ++there;
        whole += is_whole_with_a_decimal(*number);
      }
    if (there == 0 || whole < there) continue;
    for (Step& step : run.steps)
      if (auto& number = step[field]) {
        const double half = 10 * (number->high - number->low) / 2;
        number->low = number->value - half, number->high = number->value + half;
      }
  }
}

}  // namespace assay::spec::audit
