#pragma once
// What the user says of a log: which column is which field.
#include <array>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "spec/audit/run_record.hpp"

namespace assay::spec::audit {

class Mapping {
 public:
  /// `map` as ReadOptions::map; empty: columns that are named like fields mean these, and `stated` is false.
  /// Errors: UserError(usage) for an unknown field (with the nearest) or unit, a unit of something else, a
  /// field twice, or a part without "=".
  explicit Mapping(const std::string& map);

  bool stated() const { return stated_; }
  /// Of the lines of LLaMA-Factory's trainer_log.jsonl, where nothing was mapped: what it calls its plan, its
  /// clock and its tokens/s. Others mean other things by these keys. False where the user said what is what.
  bool know_llama_factory();
  /// Fields whose column the user named, as RunRecord::mapped.
  const std::vector<GivenOption>& given() const { return given_; }
  /// A field that a column's numbers are, and how they are read.
  struct Meaning {
    Field field;
    Kind kind;
    double unit;
  };
  /// What `column` means; empty when it is not mapped. `next` is where to look first, 0 at the start of a
  /// line: a log names its columns in the same order again and again.
  std::span<const Meaning> meanings(std::string_view column, std::size_t& next) const;
  /// The first number of a column decides whether its shares are printed in percent, where the user named no
  /// unit: an MFU of 46.65 is no share. Spans of `meanings` then see it.
  void settle_shares(std::string_view column, std::string_view token);
  bool shares_are_open() const { return !open_shares_.empty(); }
  enum class Taken { unmapped, read, unreadable };
  /// Reads `token` into the fields of `step` that it means; a token that is no number leaves them empty. A
  /// share may be followed by "%".
  static Taken take(Step& step, std::span<const Meaning> meanings, std::string_view token, std::int64_t line);
  /// Whether a step has more than its number, and its stamp where other fields are mapped: tables also hold
  /// rows of validations, whose columns are others.
  bool says_something(const Step& step) const;
  /// Whether some field is mapped to `column`.
  bool knows(std::string_view column) const;
  /// Refuses a stated mapping of which a column is not `there`: a misspelt column would be a number unjudged.
  /// `of_log` says what the log has instead. Errors: UserError(usage).
  void require_columns(const std::function<bool(std::string_view column, Field field)>& there,
                       const std::string& of_log) const;
  /// Likewise for JSON, of which `filled` says which fields a number was read into.
  void require_keys(const std::array<bool, field_count>& filled, const std::vector<std::string>& keys) const;

 private:
  struct Column {
    std::string name;
    std::vector<Meaning> meanings;
  };
  void add(std::string_view column, Field field, double unit);
  void leave_open(std::string_view column, Field field);  ///< where it is a share
  std::vector<Column> columns_;
  std::vector<std::string> open_shares_;  ///< columns of shares whose unit nothing has stated yet
  std::vector<GivenOption> given_;
  bool stated_ = false, llama_factory_ = false;
};

/// Adds a key of a JSON log that holds numbers or texts, unless it is known: those that a message can name.
void note_key(std::vector<std::string>& keys, std::string_view key);

}  // namespace assay::spec::audit
