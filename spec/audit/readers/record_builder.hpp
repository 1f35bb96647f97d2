#pragma once
// Puts the runs of one log together from what its reader meets, line by line, in constant memory.
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "spec/audit/readers/read_log.hpp"

namespace assay::spec::audit {

/// Steps of a run, thinned by the rules of RunRecord::steps.
class StepKeeper {
 public:
  void add(const Step& step, bool contradicts);
  std::int64_t seen() const { return seen_; }
  std::vector<Step> finish();

 private:
  static constexpr std::size_t quarter = RunRecord::kept_steps / 4, most_contradicting = 1000;
  /// A step that may be passed on: only the fields that it has, side by side, for it is written a million
  /// times a second.
  struct Late {
    void keep(const Step& step, std::int64_t at, bool contradicts_itself);
    Step step() const;
    std::int64_t index, line;
    std::uint32_t fields;  // bit i: field i is there
    bool contradicts;
    std::array<Printed, field_count> numbers;
  };
  static_assert(field_count <= 32);
  void pass_on(const Late& late);

  std::vector<Step> head_;
  std::vector<Late> middle_, contradicting_;
  std::vector<Late> tail_;  // a ring once it is full
  std::size_t oldest_ = 0;
  std::int64_t seen_ = 0, stride_ = 1, passed_ = 0;
};

/// A header that follows steps starts a new run, unless it states the same settings and the numbering goes
/// on: then the program was started again.
class RecordBuilder {
 public:
  RecordBuilder(std::string origin, Format format, StepCheck check);

  /// Where the calls that follow come from: line from 1, rank of its prefix or -1.
  void at(std::int64_t line, int rank) {
    line_ = line;
    rank_ = rank;
  }
  std::int64_t line() const { return line_; }

  /// Settings of the run whose steps follow (or have begun). An empty `value` is ignored.
  void setting(Setting setting, const std::optional<Printed>& value);
  /// Names of the run: model, gpu, dtype, schedule, parallelism.
  void name(std::string RunRecord::*which, std::string_view value);
  /// A number that a log prints at the end, of the steps so far.
  void summary(Setting setting, const std::optional<Printed>& value);
  /// The log says that the program started again, after `steps` steps if it says so.
  void restart(std::optional<std::int64_t> steps);
  /// Line and rank are filled in when the reader left them open.
  void step(Step& step);
  void unread(std::string_view text);
  std::int64_t steps_seen() const { return run_.keeper.seen(); }
  /// What the settings and names say now: the pending header's before the run's.
  const std::optional<Printed>& current(Setting setting) const;
  Format& format() { return format_; }

  /// All runs. `lines` of the whole log, `truncated` as RunRecord.
  std::vector<RunRecord> finish(std::int64_t lines, bool truncated);

 private:
  struct Run {
    RunRecord record;
    StepKeeper keeper;
    /// First and last number of each rank's steps (rank -1: lines that name none).
    std::vector<std::pair<double, std::pair<double, double>>> numbers;
  };
  RunRecord& header();
  void settle(const Step& step);
  bool continues(const Step& step) const;
  void adopt_pending();
  void close();

  std::string origin_;
  std::int64_t line_ = 0;
  int rank_ = -1;
  Format format_;
  StepCheck check_;
  std::vector<RunRecord> done_;
  Run run_;
  std::optional<RunRecord> pending_;  // a header seen after steps
  std::optional<Restart> restarting_;
  std::int64_t unread_ = 0;
  std::vector<UnreadLine> quotes_;
};

}  // namespace assay::spec::audit
