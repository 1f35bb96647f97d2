#pragma once
// Parts of one run that a document quotes in several places.
#include <string>
#include <string_view>
#include <vector>

#include "spec/audit/run_record.hpp"

namespace assay::spec::audit {

/// No setting or name that both state differs.
bool agree(const RunRecord& one, const RunRecord& other);

/// Records of one run put together: they agree, they share a step, and every step that they share reads the
/// same in at least two numbers besides its own. The order of first appearance stays.
std::vector<RunRecord> join_fragments(std::vector<RunRecord> records);

/// At most 200 bytes of `text`, control bytes and what is no UTF-8 written as \xNN.
std::string escaped(std::string_view text);

}  // namespace assay::spec::audit
