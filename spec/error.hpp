#pragma once
// Errors of every room. Library code throws one of these; it never prints and never exits.
#include <stdexcept>
#include <string>
#include <string_view>

#include "spec/text/quote.hpp"

namespace assay {

/// Process exit codes of every program (docs/running.md, "Exit codes"; the same code on every rank).
enum class ExitCode : int {
  done = 0,
  contradiction = 1,
  usage = 2,
  bad_data = 65,
  bug = 70,
  io = 74,
  saved_requeue = 75,
  non_finite = 76,
  peer_lost = 77,
};

/// A labelled constraint of the spec does not hold, e.g. label "rms_norm_c1".
/// `what()` is "<label>: <the offending values>".
class SpecError : public std::invalid_argument {
 public:
  SpecError(std::string_view label, const std::string& values)
      : std::invalid_argument(spec::message_line(std::string(label) + ": " + values)), label_(label) {}
  const std::string& label() const noexcept { return label_; }
  std::string values() const { return std::string(what()).substr(label_.size() + 2); }

 private:
  std::string label_;
};

/// Something the user gave cannot be used. The message says what, where, why, and what to do next. Line
/// breaks are its own alone: names that stand in it come from files.
class UserError : public std::runtime_error {
 public:
  UserError(ExitCode code, const std::string& message)
      : std::runtime_error(spec::message_line(message)), code_(code) {}
  UserError(ExitCode code, const std::vector<std::string>& lines)
      : std::runtime_error(spec::message_lines(lines)), code_(code) {}
  ExitCode code() const noexcept { return code_; }

 private:
  ExitCode code_;
};

/// Throws SpecError(label, values) unless `holds`. `values` is a callable so that the text is built on
/// failure only.
template <class Values>
void require(bool holds, std::string_view label, Values&& values) {
  if (!holds) throw SpecError(label, values());
}

}  // namespace assay
