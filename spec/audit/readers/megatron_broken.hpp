#pragma once
// A step line of Megatron-LM's that a terminal, a mail or a page broke into several: formats.md, "megatron".
#include <string>
#include <string_view>

#include "spec/audit/readers/line_source.hpp"

namespace assay::spec::audit::megatron {

/// How many parts between bars have a name that step lines print, with a colon behind it; 0 where no bar is.
int parts_of_step(std::string_view text);

/// Keeps a step line until the next line shows that it is whole.
class BrokenLine {
 public:
  bool holds() const { return holds_; }
  /// Whether a line was put behind what is kept.
  bool joined() const { return last_ != line_.number; }
  void hold(const Line& line);
  /// Puts `line` behind what is kept, where it goes on with it: it follows at once, and either one of the
  /// parts between its bars has a name that step lines print, or its first part has one or a number of one
  /// together with what stands behind the last bar of what is kept. False, and nothing put, where it does
  /// not.
  bool join(const Line& line);
  /// What was kept, under the number of its first line; nothing is kept then. Its text lives until the next
  /// call of `hold`.
  Line take();

 private:
  std::string text_;
  Line line_;
  std::int64_t last_ = 0;  ///< number of the line that was put last
  bool holds_ = false;
};

}  // namespace assay::spec::audit::megatron
