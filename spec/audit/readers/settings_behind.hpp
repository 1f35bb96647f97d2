#pragma once
// Settings that stand behind a prefix which is not known and is left on: they are lost, and that is reported.
#include <optional>
#include <string>
#include <vector>

#include "spec/audit/readers/line_reader.hpp"

namespace assay::spec::audit {

class SettingsBehind {
 public:
  explicit SettingsBehind(const LineFormat& own) : own_(own) {}
  /// A line before the first step that the reader of `own` passed over.
  void look(const Line& line);
  /// Those behind the prefix that most have; empty unless two lines have it, numbers aside.
  std::optional<PrefixedSettings> seen() const;

 private:
  const LineFormat& own_;
  std::vector<std::pair<std::string, PrefixedSettings>> found_;  // by the prefix without its digits
  std::size_t looked_ = 0;
};

}  // namespace assay::spec::audit
