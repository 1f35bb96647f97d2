#pragma once
// CSV and JSON lines whose columns the user named.
#include <memory>
#include <string_view>

#include "spec/audit/readers/line_reader.hpp"
#include "spec/audit/readers/mapping.hpp"

namespace assay::spec::audit {

Format mapped_format();

/// A reader of JSON lines, or of CSV (separated by comma, semicolon or tab as its first line is).
std::unique_ptr<LineReader> make_table(const Mapping& mapping, bool json);

/// Whether a table that begins with `first` names its columns like fields, so that nothing needs to be said.
bool table_explains_itself(std::string_view first, const Mapping& mapping, bool json);

}  // namespace assay::spec::audit
