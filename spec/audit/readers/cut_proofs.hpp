#pragma once
// What shows that lines are cut at one column, and do not happen to end there.
#include <string_view>
#include <vector>

#include "spec/audit/readers/line_ends.hpp"

namespace assay::spec::audit {

/// Characters of UTF-8 text.
std::size_t width_of(std::string_view text);

/// Takes the next word off `text`, and the blanks before it; empty at its end.
std::string_view word_off(std::string_view& text);

struct SeenLine {
  std::string_view text;
  std::size_t size = 0;  ///< in characters
};

/// The whole lines of the beginning of a log, at most 4,096.
std::vector<SeenLine> whole_lines(std::string_view start);

/// Whether all lines of a kind, three or more, end at the column, and some of them before words, or within a
/// word, that others have: printed lines that lack some are shorter.
bool end_within(const std::vector<SeenLine>& lines, std::size_t column);

/// Whether lines of three kinds end at the column, or those of the kind that most full lines have all do,
/// wherever the name of their last number ends. Printed lines whose numbers have a fixed number of digits,
/// behind the point or in all, do not: the line is as much longer as what stands before its last number.
bool end_alike(const std::vector<SeenLine>& lines, const LineEnds& ends);

/// Whether the lines of a kind that are shorter all end in one sign that ends lines, and those that reach the
/// column in a number that may go on.
bool end_in_sign_below(const std::vector<SeenLine>& lines, std::size_t column);

}  // namespace assay::spec::audit
