#pragma once
// What is left of the last number of a line that is cut.
#include <string_view>

namespace assay::spec::audit {

/// Whether a line ends in a sign that ends lines: of a table, of a list, of a number with its unit.
bool closes_line(std::string_view line);

/// Whether more digits may follow, or the unit: `text` ends in a number, one with letters behind it, or the
/// name of one ("loss:", "lr=").
bool number_may_go_on(std::string_view text);

/// `text` up to its last part, which may be cut: back to the bar or comma before it, or to its name.
std::string_view without_last_part(std::string_view text);

/// Whether `text` ends in "..." or U+2026 directly behind a number, or behind the name of one: the rest of it
/// is left out.
bool ends_in_ellipsis(std::string_view text);

}  // namespace assay::spec::audit
