#pragma once
// Whether the loss goes on where a program was started again at the next step, so that no step is done twice.
#include <cstddef>
#include <optional>
#include <vector>

#include "spec/audit/evidence.hpp"
#include "spec/audit/invariants.hpp"

namespace assay::spec::audit {

/// The lines of `e` that are the first behind a restart which the log states, and of a later step than the
/// line before; rising.
std::vector<std::size_t> restarts_at_later_steps(const Evidence& e);

/// The losses from line `first` of such a restart to `end` (half-open) against those of the last lines
/// before: true where they lie above them by more than chance, and `out` then contradicts. Nothing where
/// there are too few.
std::optional<bool> judge_loss_goes_on(const Evidence& e, std::size_t first, std::size_t end, Result& out);

}  // namespace assay::spec::audit
