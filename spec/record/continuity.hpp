#pragma once
// Whether the steps of a record follow one another as one run writes them (spec/record/record.md).
#include <string>
#include <vector>

#include "spec/record/event.hpp"

namespace assay::spec::record {

/// The discontinuities: a start after steps that resumes nothing, as in two runs put together; a step that is
/// missing, doubled or goes back without a resume; a resume from a step that was not done. One sentence each
/// in the order of the record, at most `most` of them and one that counts the rest. Domain: as `assemble`.
std::vector<std::string> discontinuities(const std::vector<Event>& events, std::size_t most = 5);

}  // namespace assay::spec::record
