#pragma once
// JSON in which chat tools, word processors and pages put other characters in the place of blanks, quotes,
// signs and digits: made JSON again.
#include <streambuf>
#include <string>
#include <string_view>

#include "spec/audit/readers/line_source.hpp"

namespace assay::spec::audit {

/// Whether a log that starts so is JSON, and holds such characters: PlainJson makes another text of it.
bool odd_json(std::string_view start);

/// The bytes of `blocks` with plain characters (odd_characters.hpp). A text that begins with a quote of one
/// kind (straight, typographic, an entity of HTML) ends with one of that kind; quotes of other kinds within
/// it, and what would be a backslash, stay part of it. Line breaks stay where they are.
class PlainJson : public std::streambuf {
 public:
  explicit PlainJson(Blocks& blocks) : blocks_(&blocks) {}
  /// The same of a text in memory.
  static std::string of(std::string_view text);

 protected:
  int_type underflow() override;

 private:
  enum class Quote { none, straight, typographic, entity };
  PlainJson() = default;
  std::size_t take(std::string_view text, bool last);
  void within_text(std::string_view raw, int plain, Quote quote);

  Blocks* blocks_ = nullptr;
  std::string out_;
  Quote open_ = Quote::none;  ///< what the text began with that is being read
  bool escaped_ = false;      ///< a backslash stood before
};

}  // namespace assay::spec::audit
