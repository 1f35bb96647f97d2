#include "spec/audit/readers/row_kind.hpp"

#include <algorithm>
#include <cctype>
#include <iterator>

#include "spec/audit/readers/scan.hpp"
#include "spec/error.hpp"
#include "spec/text/quote.hpp"

namespace assay::spec::audit {
namespace {

/// "dev_clean", "val/loss": the letters that it begins with.
std::string_view first_word(std::string_view text) {
  const auto end = std::find_if(text.begin(), text.end(), [](unsigned char c) { return !std::isalpha(c); });
  return text.substr(0, static_cast<std::size_t>(end - text.begin()));
}

/// `word` is in small letters.
bool is_word(std::string_view text, std::string_view word) {
  return std::equal(text.begin(), text.end(), word.begin(), word.end(),
                    [](char a, char b) { return std::tolower(static_cast<unsigned char>(a)) == b; });
}

template <std::size_t count>
bool is_one_of(std::string_view text, const std::string_view (&words)[count]) {
  return std::any_of(std::begin(words), std::end(words),
                     [&](std::string_view word) { return is_word(text, word); });
}

constexpr std::string_view of_data[] = {"split", "subset", "set", "dataset", "partition", "phase", "mode"};
constexpr std::string_view of_more[] = {"stage", "kind", "type", "event"};
constexpr std::string_view validations[] = {"val",  "valid",    "validate",   "validation", "validating",
                                            "eval", "evaluate", "evaluation", "evaluating", "holdout"};
constexpr std::string_view of_data_alone[] = {"test", "testing", "dev"};

}  // namespace

bool is_row_kind(std::string_view column) { return is_one_of(column, of_data) || is_one_of(column, of_more); }

bool is_of_validation(std::string_view column, std::string_view value) {
  value = first_word(trimmed(value));
  // A stage "dev" or "test" is also where a program runs.
  return is_row_kind(column) &&
         (is_one_of(value, validations) || (is_one_of(column, of_data) && is_one_of(value, of_data_alone)));
}

void refuse_validations_alone(const std::string& column, const std::string& value) {
  throw UserError(ExitCode::bad_data,
                  "says " + quote(value) + " under " + quote(column) +
                      " on every row, as of a validation, and no row is a step; leave that "
                      "column out if they are steps");
}

}  // namespace assay::spec::audit
