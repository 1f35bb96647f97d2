#include "spec/audit/readers/lone_gpu_rate.hpp"

#include <algorithm>
#include <utility>

namespace assay::spec::audit {

void take_lone_gpu_rate(RunRecord& record) {
  const auto any = [&](Field field) {
    return std::any_of(record.steps.begin(), record.steps.end(),
                       [&](const Step& step) { return step[field].has_value(); });
  };
  if (!any(Field::gpu_tokens_per_second) || any(Field::tokens_per_second)) return;
  for (Step& step : record.steps)
    step[Field::tokens_per_second] = std::exchange(step[Field::gpu_tokens_per_second], std::nullopt);
  record.format.tokens_per_second = Scope::gpu;
}

}  // namespace assay::spec::audit
