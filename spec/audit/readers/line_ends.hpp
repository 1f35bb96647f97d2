#pragma once
// Lines that a terminal, a viewer or a tool cut, or wrapped, at a fixed column, and what is left of their
// last number.
#include <string>
#include <string_view>
#include <vector>

namespace assay::spec::audit {

/// Where all lines of a log end that were longer.
struct LineEnds {
  std::size_t column = 0;           ///< in characters; 0: lines end where they were printed to end
  bool wrapped = false;             ///< what stood behind the column is the next line; else it is lost
  std::size_t indent = 0;           ///< blanks before such a next line
  std::vector<std::string> starts;  ///< in order: first words, digits as 0, of lines that go on with no other

  /// Whether `line` reaches the column.
  bool full(std::string_view line) const;
  /// Whether `line` begins as no other line of the log does.
  bool goes_on(std::string_view line) const;
};

/// Tells by the first bytes of a log. That some lines are equally long proves nothing: it takes lines of
/// three kinds, or lines of one kind that all end there wherever their last number begins; and for wrapped
/// lines that what follows them begins as no other line. `rows`: of a table, which end and begin in numbers:
/// they are not taken for wrapped.
LineEnds line_ends(std::string_view start, bool rows = false);

}  // namespace assay::spec::audit
