#pragma once
// An event as one line of JSON.
#include <string>

#include "spec/record/event.hpp"

namespace assay::spec::record {

/// One JSON object without a line break. Numbers are written in the shortest form that reads back to the same
/// bits; what JSON cannot hold is written as "nan", "inf" or "-inf". Absent optional fields are left out.
/// Bytes that are not UTF-8 become U+FFFD, so that the line is valid JSON whatever a path or a sampled text
/// holds.
std::string to_json(const Event& event);

}  // namespace assay::spec::record
