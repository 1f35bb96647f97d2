#pragma once
// Step lines of other trainers among those that the reader of a log passes over.
#include <vector>

#include "spec/audit/readers/line_reader.hpp"

namespace assay::spec::audit {

class ForeignLook {
 public:
  /// `own` is read; nullptr: a table, of which every line is a row.
  explicit ForeignLook(const LineFormat* own) : own_(own) {}
  /// A line that the reader passed over.
  void look(const Line& line);
  /// Where a step of another trainer begins in `text`, and no own one behind it, as a writer leaves it that
  /// does not wait for the other; npos: there is none.
  std::size_t begins_in(std::string_view text) const;
  const std::vector<ForeignLines>& seen() const { return seen_; }

 private:
  const LineFormat* own_;
  std::vector<ForeignLines> seen_;
};

}  // namespace assay::spec::audit
