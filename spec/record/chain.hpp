#pragma once
// The hash that ends each line of a record, of the line and of the one before it: what was changed, taken out
// or put in after it was written is found (spec/record/record.md, "Chain").
#include <cstdint>
#include <string>
#include <string_view>

namespace assay::spec::record {

/// A line, taken apart.
struct LineParts {
  std::string_view event;  ///< its JSON object, without the brace that ends it and without the hash
  std::string_view hash;   ///< 16 characters; empty: the line has none, as in records of earlier versions
};
LineParts parts_of(std::string_view line);

/// What a line is behind the one before it.
enum class Link {
  right,
  broken,   ///< it is not as it was written, or stands behind another line than it was written behind
  cut_off,  ///< the beginning of a line, behind which the writer was ended
};

/// Follows the lines of one record, from the first or from one in its middle on.
class Chain {
 public:
  /// The line of `event`, a JSON object, that comes next; without a line break.
  std::string line_of(std::string_view event);
  /// Takes the line that comes next (record_c3). `ended`: by a line break, as all but a last line are.
  Link follow(std::string_view line, bool ended = true);
  /// The next line stands behind `line`, whatever came before.
  void go_on_behind(std::string_view line);

  /// Whether a line had a hash: from there on every line has one.
  bool begun() const { return begun_; }
  /// Of the last line, 16 hexadecimal digits; zeros before the first.
  std::string hash() const;

 private:
  bool takes(std::string_view line);

  std::uint64_t last_ = 0;
  bool begun_ = false;
};

}  // namespace assay::spec::record
