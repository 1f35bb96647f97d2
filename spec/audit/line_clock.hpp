#pragma once
// What the stamps of a line and of the one before say of the steps between them.
#include <cstddef>
#include <optional>
#include <vector>

#include "spec/audit/evidence.hpp"

namespace assay::spec::audit {

/// Time of the steps since the line before, by the line's own step time or rate, over what the stamps show.
struct LineWindow {
  Interval ratio{1, 1};  ///< all that roundings and the stamps' resolution leave open
  Interval clock{0, 0};  ///< [s]
  double steps = 0;      ///< since the line before
};

/// Windows of one log are alike, but for roundings and pauses. Chosen: it tells a line's number from one that
/// is 1.3 times it.
constexpr double likeness_of_windows = 0.1;

/// Of line `i`, by `field` (seconds, or tokens_per_second where the tokens of a step are known; of no other
/// one). Nothing where the stamps are missing or a start lies between, where one step's number would stand
/// for others that are not logged, or where the stamps are coarser than the steps.
std::optional<LineWindow> line_window(const Evidence& evidence, std::size_t i, Field field);

/// Leaves out of `fields`, numbers of line `i` one of which is `off` times what it is or one part in so many,
/// those that the stamps clear; where these, or the next lines' running mean, show one that is so wrong, all
/// others. Never all.
void clear_by_stamps(const Evidence& evidence, std::size_t i, double off, std::vector<Field>& fields);

}  // namespace assay::spec::audit
