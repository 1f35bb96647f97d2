#pragma once
// The times of the parts of a step, as a step event of our own record states them.
#include <cstdint>
#include <optional>
#include <string_view>

#include "spec/audit/printed.hpp"

namespace assay::spec::audit {

/// The seconds in the object "phases" of the event that `text` is, added up; the interval holds what another
/// order of adding gives. Empty where there is no such object, or one of its numbers is none. [s]
std::optional<Printed> phase_times(std::string_view text, std::int64_t line);

}  // namespace assay::spec::audit
