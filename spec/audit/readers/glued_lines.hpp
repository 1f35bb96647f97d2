#pragma once
// Two step lines in one, as two writers leave them that do not wait for each other.
#include <cstddef>
#include <string>
#include <string_view>

#include "spec/audit/readers/line_prefix.hpp"

namespace assay::spec::audit {

/// How a step of the log begins.
class StepBeginning {
 public:
  StepBeginning() = default;
  /// What `step_line` shows: its prefix, and its words up to the first number.
  StepBeginning(const LineFormat& format, std::string_view step_line);

  /// Where a second step begins in a line.
  struct Second {
    std::size_t end_of_first = std::string_view::npos;  ///< npos: there is none
    std::size_t begin = 0;                              ///< behind the prefix that names its rank
    int rank = -1;                                      ///< that stands there
  };
  Second second(std::string_view text) const;
  /// Whether the words of a step stand in `text`, or it is not known which they are.
  bool may_be_step(std::string_view text) const {
    return words_.empty() || text.find(words_) != std::string_view::npos;
  }

 private:
  std::string words_;
  PrefixForm before_;
};

}  // namespace assay::spec::audit
