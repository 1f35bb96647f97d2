#pragma once
// What stands before each line of a program that ran in a container, under a remote shell or a scheduler:
// "node03: " (pdsh, clush), "worker-1  | " (docker compose), "[pod/trainer-0/main] " (kubectl logs --prefix),
// "(Worker pid=71) " (Ray), "2025-05-01T10:00:00.123Z stdout F " and other time stamps, "INFO:root:"
// (Python's logging); and whatever else stands before a step line ("run.log:12:" of grep), where it stands
// before a setting likewise, numbers aside.
#include <string>
#include <string_view>
#include <vector>

#include "spec/audit/readers/line_reader.hpp"
#include "spec/audit/readers/prefix_form.hpp"

namespace assay::spec::audit {

/// Whether `text` starts as a prefix does; most lines do not.
bool may_have_prefix(std::string_view text);

/// Bytes before the trainer's own part of a step line: the most that can be cut off, word by word, so that
/// `format` still recognises what is left.
std::size_t before_own(const LineFormat& format, std::string_view step_line);

class LinePrefix {
 public:
  LinePrefix() = default;
  /// The prefix that a step line shows: as much of it as can be taken off so that `format` still recognises
  /// the line. None where there is none.
  LinePrefix(const LineFormat& format, std::string_view step_line);

  bool none() const { return parts_.empty() && whole_.none(); }
  /// Whether steps are to be read without it too: their trainer knows them only so, or a rank stands in it.
  bool on_steps() const { return of_steps_ > 0 || only_behind_; }
  /// Takes it, or as many of its parts as are there, off `line`, whose rank is the one that stands in it.
  /// False, and the line as it was, where its first part is not there.
  bool take(Line& line) const { return take(line, parts_.size(), true); }
  /// The same of a step, whose own stamp is left on it.
  bool take_off_step(Line& line) const { return take(line, of_steps_, only_behind_); }

 private:
  friend bool may_have_prefix(std::string_view text);
  enum class Kind { rank, stamp, host, unit, bar, bracket, parenthesis, level };
  struct Part {
    Kind kind;
    bool blank = false;  ///< it ends in one, which else is the line's own
    std::string head;  ///< of a name: its letters before the first digit, which other names of the log share
  };
  static std::size_t length(Kind kind, std::string_view text);
  static Part part(std::string_view text, bool first, std::size_t& length);
  bool take(Line& line, std::size_t parts, bool rest) const;

  std::vector<Part> parts_;
  PrefixForm rest_, whole_;   ///< what stands behind the parts; with them
  std::size_t of_steps_ = 0;  ///< parts that steps are read without
  bool only_behind_ = false;  ///< steps are not known with it
};

}  // namespace assay::spec::audit
