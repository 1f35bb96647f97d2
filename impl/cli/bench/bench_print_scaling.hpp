#pragma once
// What `assay bench scaling` found, as a table and as JSON (schema assay.bench.scaling/1).
#include <cstdint>
#include <string>
#include <vector>

#include "spec/metrics/scaling.hpp"

namespace assay::impl::cli {

struct ScalingStudy {
  bool strong = false;
  std::int64_t steps = 0, steps_left_out = 0;  ///< of each run
  std::vector<spec::metrics::ScalingRow> rows{};
  std::string refused{};                                 ///< output of the first audit that found something
  spec::metrics::StepDifferences differences{}, most{};  ///< of strong scaling: spec/metrics/scaling.md, C2
  bool agree = true;                                     ///< they are roundings
};

std::string scaling_text(const ScalingStudy& study);
std::string scaling_json(const ScalingStudy& study);

}  // namespace assay::impl::cli
