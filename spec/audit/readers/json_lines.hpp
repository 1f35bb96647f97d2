#pragma once
// JSON lines whose keys the user named.
#include <memory>

#include "spec/audit/readers/line_reader.hpp"
#include "spec/audit/readers/mapping.hpp"

namespace assay::spec::audit {

std::unique_ptr<LineReader> make_json_lines(const Mapping& mapping);

}  // namespace assay::spec::audit
