#pragma once
// TOML 1.0 read into a document, in which every key and value has its line and column.
#include <optional>
#include <string>
#include <string_view>

#include "spec/text/document.hpp"

namespace assay::spec {

/// Reads `text` into `root`, an object; the members of each table are in the order of the text. The fault, or
/// nothing when the text is valid TOML.
std::optional<document::Fault> read_toml(std::string_view text, document::Node& root);

/// The same with errors: UserError(code) "<origin>:<line>:<column>: not valid TOML: ...".
document::Tree parse_toml(std::string_view text, const std::string& origin, ExitCode code = ExitCode::usage);

}  // namespace assay::spec
