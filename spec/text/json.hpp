#pragma once
// JSON (RFC 8259) read into a document and written as text.
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "spec/text/document.hpp"

namespace assay::spec {

/// Nesting that read_json accepts: ours is below 10, and a reader may recurse over it.
inline constexpr std::size_t json_depth_limit = 100;

/// Reads `text` into `root`. The fault, or nothing: not valid JSON (as in spec/text/json_events.hpp), a key
/// that occurs twice in one object, nesting above the limit.
std::optional<document::Fault> read_json(std::string_view text, document::Node& root);

/// The same with errors: UserError(code) that starts with `origin`.
document::Tree parse_json(std::string_view text, const std::string& origin,
                          ExitCode code = ExitCode::bad_data);

/// Gives every key and value below `root`, which read_json made of `text`, its line and column, so that
/// errors can name them. Apart from reading: a record of many lines has no use for it. Domain: nesting as
/// read_json.
void locate_values(std::string_view text, document::Node& root);

/// `text` as a JSON string with its quotes; what nobody sees is escaped (spec/text/utf8.hpp). Bytes that are
/// not UTF-8 become U+FFFD.
std::string json_string(std::string_view text);

/// `number` in the shortest form that reads back to the same bits; what JSON cannot hold is written as "nan",
/// "inf" or "-inf", with the quotes.
std::string json_number(double number);

/// The same with a point or an exponent, 1.0: for readers that tell reals from integers.
std::string json_real(double number);

}  // namespace assay::spec
