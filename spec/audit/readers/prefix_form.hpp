#pragma once
// The form of what stands before lines of a log, and what it is made of.
#include <cctype>
#include <string>
#include <string_view>

namespace assay::spec::audit {

inline bool numeral(char c) { return c >= '0' && c <= '9'; }
inline bool alphabetic(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }

/// Passes over `form` at `at`, in which '0' is a digit, 'A' a letter and '_' a digit or a blank.
bool pass_form(std::string_view text, std::size_t& at, std::string_view form);

/// Bytes of the level of a message that `text` starts with.
std::size_t level_word(std::string_view text);

/// The text that stood before one line: other lines have it too where they begin likewise, but for its
/// numbers, how many blanks stand in it, and the level of a message (INFO, WARNING).
class PrefixForm {
 public:
  PrefixForm() = default;
  explicit PrefixForm(std::string_view before);
  bool none() const { return form_.empty(); }
  /// Bytes of it at the start of `text`; 0 where it is not there.
  std::size_t length(std::string_view text) const;

 private:
  std::string form_,
      without_stamp_;  ///< of all of it; of what stands before a stamp, which may be the trainer's
};

}  // namespace assay::spec::audit
