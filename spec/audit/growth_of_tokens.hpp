#pragma once
// The tokens of a step, by those that lines count since the start.
#include <optional>

#include "spec/audit/evidence.hpp"

namespace assay::spec::audit {

/// Tokens of a step where those since the start grow alike on three lines and more.
std::optional<Interval> growth_of_tokens(const Evidence& e);

/// Likewise of a table of which nothing is known: single lines may leave what the lines around them agree in,
/// where they are a tenth of all at the most. Nothing where more than three digits of the growth differ
/// (inputs of other lengths, another batch).
std::optional<Interval> growth_of_most_tokens(const Evidence& e);

}  // namespace assay::spec::audit
