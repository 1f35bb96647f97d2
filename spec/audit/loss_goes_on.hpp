#pragma once
// Whether the loss goes on where a program was started again at the next step, so that no step is done twice.
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "spec/audit/evidence.hpp"
#include "spec/audit/invariants.hpp"

namespace assay::spec::audit {

/// The lines of `e` that are the first behind a restart which the log states, and of the next step behind
/// that of the line before, or of the next that would be logged; rising.
std::vector<std::size_t> restarts_at_later_steps(const Evidence& e);

/// The losses from line `first` of such a restart to `end` (half-open) against those of the last lines
/// before: true where they lie above them by more than chance, and so far as weights that were not restored
/// would put them; `out` then contradicts. `told`: where they lie above them by less, what may have raised
/// them. Nothing where there are too few.
std::optional<bool> judge_loss_goes_on(const Evidence& e, std::size_t first, std::size_t end, Result& out,
                                       std::string& told);

}  // namespace assay::spec::audit
