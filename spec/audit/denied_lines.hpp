#pragma once
// Lines whose numbers the stamps deny.
#include <cstddef>
#include <vector>

#include "spec/audit/line_clock.hpp"

namespace assay::spec::audit {

struct DeniedLines {
  std::size_t judged = 0;          ///< lines that have a window
  std::vector<std::size_t> lines;  ///< indices in Evidence::steps, rising
  bool part = false;               ///< they are those of a part of the log
  bool most = false;  ///< more lines than not leave their stamps, which is no matter of single lines
};

/// Lines whose number `field` (seconds or tokens_per_second) is not what their stamps make of it, where those
/// of the other lines are: alone among their neighbours, and far from the other lines' number where a pause
/// could explain it; or those of a part of the log, all by one factor.
DeniedLines denied_lines(const Evidence& evidence, Field field);

}  // namespace assay::spec::audit
