#pragma once
// Text inside HTML and SVG.
#include <string>
#include <string_view>

namespace assay::impl::report {

/// `text` with & < > " ' as entities and everything that is not UTF-8, or a control character, as U+FFFD:
/// safe as content and as a quoted attribute, whatever a record's names and texts hold.
std::string escaped(std::string_view text);

}  // namespace assay::impl::report
