#pragma once
// Pairs of a fault and a format whose logs do not tell it as well as others do, each with the reason. All
// other pairs are found and named in nine draws of ten.
#include <string_view>
#include <vector>

#include "tests/support/simulated/run.hpp"

namespace assay::tests {

struct Floor {
  std::string_view fault, what;  ///< Fault::id, Fault::text
  LogFormat format;
  int detected, right;  ///< of the draws of docs/measurements/audit-confusion.md, at the least
  std::string_view why;
  int told = right;  ///< named first, or among the readings that explain the log equally
};

const std::vector<Floor>& floors();

}  // namespace assay::tests
