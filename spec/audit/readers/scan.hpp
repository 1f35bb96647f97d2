#pragma once
// Finding numbers in a line.
#include <cstdint>
#include <optional>
#include <string_view>

#include "spec/audit/readers/line_shape.hpp"
#include "spec/audit/run_record.hpp"
#include "spec/audit/shortest.hpp"

namespace assay::spec::audit {

/// `text` without blanks at its ends.
std::string_view trimmed(std::string_view text);

/// The number that `text` starts with after blanks, as it is written: sign, digits in groups, fraction,
/// exponent; or nan, inf. Empty when there is none.
std::string_view number_token(std::string_view text);

/// number_token where more follows it; empty at the end of `text`. For lines whose trainer prints more behind
/// the number: they are cut in it.
std::string_view followed_number(std::string_view text);

/// Takes the number off that `text` starts with after blanks. Empty when there is none, or it cannot be read.
std::optional<Printed> take_number(std::string_view& text, Kind kind, double unit, std::int64_t line);

/// The whole of `text` behind the first `key`; empty data() when it is not there.
std::string_view behind(std::string_view text, std::string_view key);

/// The value of "name=value" in a printed argument list, up to a comma, blank or bracket; data() is null when
/// there is none, or the list is cut in it.
std::string_view argument(std::string_view text, std::string_view name);

/// Reads numbers of one line. What is there but cannot be read makes the line unread. Keys are looked for
/// from the last number on first, so that a line in its usual order is gone through once.
class Scan {
 public:
  /// The numbers that steps take are noted in `taken`.
  Scan(std::string_view text, std::int64_t line, TakenNumbers* taken = nullptr)
      : text_(text), line_(line), taken_(taken) {}

  /// The number behind `key`. A `suffix` must follow it (after blanks); without one the line is bad.
  std::optional<Printed> after(std::string_view key, Kind kind, double unit = 1,
                               std::string_view suffix = {});
  /// The same into `step`; the line is bad when `needed` and the key is not there.
  void take(Step& step, Field field, std::string_view key, Kind kind, double unit = 1,
            std::string_view suffix = {}, bool needed = false);
  /// The number that `text`, a part of the line, starts with after blanks.
  void take_at(Step& step, Field field, std::string_view text, Kind kind, double unit);
  bool has(std::string_view key) const { return text_.find(key) != std::string_view::npos; }
  bool bad() const { return bad_; }
  void spoil() { bad_ = true; }
  /// The text behind `key`, which is looked for as for `after`; data() is null when it is not there.
  std::string_view behind_next(std::string_view key) const;
  /// Behind the last number read.
  std::string_view rest() const { return text_.substr(at_); }

 private:
  enum class Found { nothing, bad, number };
  Found read(std::string_view key, Kind kind, double unit, std::string_view suffix, Printed& out);

  std::string_view text_;
  std::int64_t line_;
  TakenNumbers* taken_;
  std::size_t at_ = 0, number_ = 0;  // behind the last number, and where it starts
  bool bad_ = false;
};

/// The number that `text` starts with after blanks, times a prefix that stands right behind it ("14.2K",
/// "1.02M"), which makes it a rounded one. Empty when there is none.
/// What the number was read as is noted in `taken`, of `field`.
std::optional<Printed> prefixed_number(std::string_view text, Kind kind, double unit, std::int64_t line,
                                       TakenNumbers* taken = nullptr, Field field = Field::count_);

/// Metric and binary prefixes as logs write them behind a number: "", k K M G T P B; 0 when unknown.
double prefix_unit(std::string_view prefix);

/// Whether a key of a step stands for training by rewards or preferences (TRL's GRPO, PPO, DPO): its loss is
/// then no cross-entropy.
bool of_rewards(std::string_view key);

}  // namespace assay::spec::audit
