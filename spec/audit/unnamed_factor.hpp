#pragma once
// A number that is off by a factor which no known mistake makes: reported as what it is, without a name.
#include <vector>

#include "spec/audit/changes.hpp"

namespace assay::spec::audit {

/// What stays unexplained together, as one number is wrong, and the change that says so.
struct Unnamed {
  std::vector<Relation> relations;  ///< at least one
  Change change;                    ///< "unknown", at the cost of one
};

/// Of the relations `left` open under `factors`, the first and those that one wrong number (MFU, or FLOP/s)
/// moves with it: where every judged relation that rests on this number is open, and all by one factor.
Unnamed unnamed(const Comparisons& comparisons, const Factors& factors, const std::vector<Relation>& left);

}  // namespace assay::spec::audit
