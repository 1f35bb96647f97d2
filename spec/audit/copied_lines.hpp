#pragma once
// Lines that stand in a log a second time, as they are: no restart, which does its steps at another time.
#include <cstddef>
#include <string>

#include "spec/audit/evidence.hpp"
#include "spec/audit/invariants.hpp"

namespace assay::spec::audit {

/// Lines of Evidence::steps from one on that are the same as others before them.
struct Copies {
  std::size_t first = 0, lines = 0;  ///< the first of those that are copied; none: no copies
};

/// Whether line `i`, whose step falls back, and those behind it are copies of the lines of the same steps:
/// two at least with the same stamps, or without stamps three with the same times, rates or shares, that are
/// not the same on all of them, and no word of a restart before them. Losses and learning rates alone are
/// those of a restart that does its steps again bit for bit.
Copies copies_at(const Evidence& e, std::size_t i);

/// "lines 60 to 64 are copies of lines 55 to 59", where line `i` of the steps is the first copy.
std::string told_as_copies(const Evidence& e, std::size_t i, const Copies& copies);
/// That these lines, as they are `told`, are copies.
void blame_copies(Result& result, const std::string& told);

}  // namespace assay::spec::audit
