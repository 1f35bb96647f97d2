#pragma once
// Tokens/s that are the tokens over the time since the start, or since the line before, as the lines
// themselves tell.
#include <optional>

#include "spec/audit/evidence.hpp"

namespace assay::spec::audit {

/// How many times the mean since the start the tokens/s of nearly all lines are, or one part in how many: a
/// whole number, 1 where they are that mean. Nothing where the lines share none: rates of single steps do
/// not, nor do clocks with pauses beside a rate that leaves these out, unless each pause were as many times
/// the steps between two lines, to half a hundredth, from the first line on.
std::optional<double> multiple_of_mean_since_start(const Evidence& e);

/// Likewise of the tokens since the line before over the time since then. A rate of one step of those between
/// two lines scatters beside the clock of all of them, and shares no multiple with the other lines.
std::optional<double> multiple_of_mean_since_line_before(const Evidence& e);

}  // namespace assay::spec::audit
