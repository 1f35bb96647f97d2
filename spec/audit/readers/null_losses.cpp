#include "spec/audit/readers/null_losses.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace assay::spec::audit {

Printed null_loss(std::int64_t line) {
  constexpr double without_bound = std::numeric_limits<double>::infinity();
  return {std::numeric_limits<double>::quiet_NaN(), -without_bound, without_bound, line};
}

bool is_null(const std::optional<Printed>& loss) {
  return loss && std::isnan(loss->value) && std::isinf(loss->low);
}

std::uint32_t NullLossRows::others(const Step& step) {
  std::uint32_t out = 0;
  for (std::size_t i = 0; i < field_count; ++i)
    if (step.fields[i] && static_cast<Field>(i) != Field::loss) out |= std::uint32_t{1} << i;
  return out;
}

bool NullLossRows::is_step(const Step& step, std::optional<double> last) const {
  constexpr std::uint32_t number = std::uint32_t{1} << static_cast<int>(Field::step);
  const auto& at = step[Field::step];
  if (at && last && at->value == *last) return false;
  const std::uint32_t here = others(step);
  return fields_ ? here == *fields_ : (here & ~number) != 0;
}

void settle_null_losses(RunRecord& run) {
  if (run.null_losses.count == 0) return;
  std::size_t longest = 0, here = 0;
  for (const Step& step : run.steps) {
    if (is_null(step[Field::loss])) {
      ++here;
      continue;
    }
    longest = std::max(longest, here);
    here = 0;
  }
  // A log without any loss says nothing of one.
  const bool diverged = here > longest && here < run.steps.size();
  for (std::size_t i = 0; i < run.steps.size(); ++i) {
    auto& loss = run.steps[i][Field::loss];
    if (!is_null(loss)) continue;
    const double none = loss->value;
    if (diverged && i + here >= run.steps.size())
      loss = Printed{none, none, none, loss->line};
    else
      loss.reset();
  }
  run.null_losses.at_end = diverged ? static_cast<std::int64_t>(here) : 0;
}

}  // namespace assay::spec::audit
