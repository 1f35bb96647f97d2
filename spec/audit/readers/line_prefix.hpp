#pragma once
// What stands before each line of a program that ran in a container, under a remote shell or a scheduler:
// "node03: " (pdsh, clush), "worker-1  | " (docker compose), "[pod/trainer-0/main] " (kubectl logs --prefix),
// "(Worker pid=71) " (Ray), "2025-05-01T10:00:00.123Z stdout F " and other time stamps.
#include <string>
#include <string_view>
#include <vector>

#include "spec/audit/readers/line_reader.hpp"

namespace assay::spec::audit {

/// Whether `text` starts as a prefix does; most lines do not.
bool may_have_prefix(std::string_view text);

class LinePrefix {
 public:
  LinePrefix() = default;
  /// The prefix that a step line shows: as much of it as can be taken off so that `format` still recognises
  /// the line. Without parts where there is none.
  LinePrefix(const LineFormat& format, std::string_view step_line);

  bool none() const { return parts_.empty(); }
  /// Whether steps are to be read without it too: their trainer knows them only so, or a rank stands in it.
  bool on_steps() const { return on_steps_; }
  /// Takes it, or as many of its parts as are there, off `line`, whose rank is the one that stands in it.
  /// False, and the line as it was, where its first part is not there.
  bool take(Line& line) const;

 private:
  friend bool may_have_prefix(std::string_view text);
  enum class Kind { rank, stamp, host, unit, bar, bracket, parenthesis };
  struct Part {
    Kind kind;
    bool blank = false;  ///< it ends in one, which else is the line's own
    std::string head;  ///< of a name: its letters before the first digit, which other names of the log share
  };
  static std::size_t length(Kind kind, std::string_view text);
  static Part part(std::string_view text, std::size_t& length);

  std::vector<Part> parts_;
  bool on_steps_ = false;
};

}  // namespace assay::spec::audit
