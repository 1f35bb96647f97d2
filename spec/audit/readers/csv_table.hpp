#pragma once
// Tables whose cells a comma, semicolon or tab separates.
#include <memory>
#include <string_view>
#include <vector>

#include "spec/audit/readers/line_reader.hpp"
#include "spec/audit/readers/mapping.hpp"

namespace assay::spec::audit {

/// The cells of a CSV line (RFC 4180 without line breaks in cells), without quotes and blanks.
std::vector<std::string_view> cells(std::string_view line, char separator);

/// Which of them the first line of a table holds; a comma where it holds none.
char separator_of(std::string_view header);

std::unique_ptr<LineReader> make_csv(const Mapping& mapping);

}  // namespace assay::spec::audit
