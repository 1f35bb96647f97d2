#pragma once
// How versions and descendants of one trainer count FLOPs, where a log names neither.
#include <string>
#include <vector>

#include "spec/audit/evidence.hpp"

namespace assay::spec::audit {

/// Another way in which versions of one trainer count FLOPs, as a factor on what they count now.
struct Counting {
  double factor = 1;
  std::string note;  ///< empty: as now
};

/// The trainer's count as it is now, first, and all others that its log may be of.
std::vector<Counting> countings(const Evidence& evidence);

}  // namespace assay::spec::audit
