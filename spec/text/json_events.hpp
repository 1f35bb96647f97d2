#pragma once
// A JSON text (RFC 8259) as a stream of events, for readers that judge it as they go and keep no tree.
// Strict: no comments, no NaN, UTF-8 and paired surrogates only; one byte order mark at the start is skipped.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "spec/text/document.hpp"

namespace assay::spec {

/// Takes the parser's events, in the order of the text. Returning false stops it; exceptions pass through.
/// The strings may be moved from.
class JsonEvents {
 public:
  virtual ~JsonEvents() = default;
  virtual bool null() = 0;
  virtual bool boolean(bool value) = 0;
  virtual bool negative(std::int64_t number) = 0;  ///< an integer below zero
  virtual bool natural(std::uint64_t number) = 0;
  /// A number with fraction or exponent, or an integer outside [-2^63, 2^64); always finite.
  virtual bool real(double number) = 0;
  virtual bool text(std::string& value) = 0;
  virtual bool begin_object() = 0;
  virtual bool key(std::string& key) = 0;
  virtual bool end_object() = 0;
  virtual bool begin_list() = 0;
  virtual bool end_list() = 0;
};

/// Feeds `text` to `events`. The fault, or nothing when the text is one valid JSON value or an event returned
/// false. Uses no stack for nesting.
std::optional<document::Fault> read_json_events(std::string_view text, JsonEvents& events);

}  // namespace assay::spec
