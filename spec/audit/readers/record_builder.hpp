#pragma once
// Puts the runs of one log together from what its reader meets, line by line, in constant memory.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "spec/audit/readers/line_shape.hpp"
#include "spec/audit/readers/read_log.hpp"
#include "spec/audit/readers/step_keeper.hpp"
#include "spec/audit/trainer.hpp"

namespace assay::spec::audit {

/// Distances between the numbers of one rank's steps, in constant memory.
class GapCounter {
 public:
  void add(double number, std::int64_t line) {
    if (!(number > highest_)) return;  // a restart, a copy, or another rank's line
    const double distance = number - highest_;
    const bool hidden = hidden_ > 0 && line > hidden_in_ && distance <= usual() * (hidden_ + 1),
               told = hidden || (left_out_ > 0 && line > left_out_);
    if (line > left_out_) left_out_ = 0;
    if (line > hidden_in_) hidden_ = 0;
    if (steps_ >= 2 && !told) {
      if (!gaps_.empty() && gaps_.front().distance == distance)
        ++gaps_.front().count;
      else
        count(distance, line);
    }
    ++steps_;
    highest_ = number;
  }
  /// That line says that others are left out: the distance to the next step is theirs.
  void left_out(std::int64_t line) { left_out_ = line; }
  /// That line may hold up to so many steps, none of which can be read.
  void hidden(std::int64_t line, double steps) { hidden_in_ = line, hidden_ += steps; }
  const std::vector<StepGap>& gaps() const { return gaps_; }

 private:
  void count(double distance, std::int64_t line);
  /// The distance of most steps so far; any where there is none.
  double usual() const;
  std::vector<StepGap> gaps_;
  double highest_ = -1e300;
  std::int64_t steps_ = 0;
  std::int64_t left_out_ = 0, hidden_in_ = 0;  // 0: none waits
  double hidden_ = 0;                          // steps
};

/// A header that follows steps starts a new run, unless it states the same settings and the numbering goes
/// on: then the program was started again.
class RecordBuilder {
 public:
  RecordBuilder(std::string origin, Format format, const ReadOptions& options);

  /// Where the calls that follow come from: line from 1, rank of its prefix or -1.
  void at(std::int64_t line, int rank) {
    line_ = line;
    rank_ = rank;
  }
  std::int64_t line() const { return line_; }

  /// The number at the end of this line may be cut, and is left out.
  void cut_end() {
    if (cut_.count++ == 0) cut_.line = line_;
  }
  const CutLines& cut_ends() const { return cut_; }

  /// Settings of the run whose steps follow (or have begun). An empty `value` is ignored.
  void setting(Setting setting, const std::optional<Printed>& value);
  /// One that a line before may have said: which of the two ran, where they differ, is not known.
  void setting_again(Setting setting, const std::optional<Printed>& value);
  /// Names of the run: model, gpu, dtype, schedule, parallelism.
  void name(std::string RunRecord::*which, std::string_view value);
  /// The whole model of the run.
  void define(const ModelSpec& model) { header().definition = model; }
  /// One for each start, to be completed.
  std::vector<MemoryOfStart>& memory() { return run_.record.memory; }
  /// Of the events so far.
  std::vector<HeldIdentity>& identities() { return run_.record.identities; }
  /// Whether a place that the record must hold has not come yet (ReadOptions::places).
  bool awaits_places() const { return !places_.empty(); }
  /// The line with that hash came.
  void place(std::string_view hash) {
    std::erase_if(places_, [&](const record::StatedPlace& each) { return each.hash == hash; });
  }
  /// The line says that the run goes on behind steps whose lines did not come.
  void missing(std::int64_t first, std::int64_t last) {
    if (run_.record.missing.size() < 1000) run_.record.missing.push_back({first, last, line_});
  }
  /// Of the step that comes next, or came last.
  void rule_out(RuledOutNumber number) {
    if (run_.record.ruled_out.size() < 1000) run_.record.ruled_out.push_back(std::move(number));
  }
  /// To be completed.
  SavedState& saved() { return run_.record.saved; }
  /// The MLP of its blocks.
  void mlp(const std::optional<BlockMlp>& stated) { header().mlp = stated; }
  /// To be completed.
  std::optional<ParameterTensors>& tensors() { return header().tensors; }
  /// What the first rank counts of a model that is cut over ranks.
  void first_rank(RankParameters counted) { header().first_rank = std::move(counted); }
  /// Whether the model's head is its embedding.
  void tied_embeddings(bool tied) { header().tied_embeddings = tied; }
  /// A validation's line, of a trainer whose rates leave out its time.
  void validated() { run_.record.validates = true; }
  /// A line of an evaluation or of saving, of a trainer whose times leave both out.
  void paused() {
    if (run_.record.pauses.size() < RunRecord::kept_pauses)
      run_.record.pauses.push_back(line_);
    else
      run_.record.validates = true;
  }
  /// RunFacts::line_interval.
  void line_interval(double steps) { header().line_interval = steps; }
  /// RunRecord::skips_untold, as the settings say, or as the steps so far show.
  void skips_untold() { header().skips_untold = true; }
  void skips_shown_untold() { run_.record.skips_untold = true; }
  /// Lines end before their count of skipped steps: those of the run that have theirs still say it.
  void skips_cut_off() { run_.skips_cut_off = true; }
  /// Whether queries and keys are normed.
  void qk_norm(bool normed) { header().qk_norm = normed; }
  void norm(Norm of_blocks) { header().norm = of_blocks; }
  /// Steps of the run contradict a setting that changes as it goes.
  void forget(Setting setting) { run_.record[setting].reset(); }
  /// A line of the run says that its loss is made of rewards.
  void of_rewards() { run_.record.objective = "rewards"; }
  /// A number that a log prints at the end, of the steps so far.
  void summary(Setting setting, const std::optional<Printed>& value);
  /// The log says that the program started again, after `steps` steps if it says so.
  void restart(std::optional<std::int64_t> steps);
  /// The log says that the program began with its first step, or with new weights: a number that falls back
  /// is then another run's, whether or not its first lines are there.
  void begin_anew();
  /// Line and rank are filled in when the reader left them open. Only those `fields` are examined (bit i:
  /// field i; besides the rank).
  void step(Step& step, std::uint32_t fields = all_fields);
  static constexpr std::uint32_t all_fields = (std::uint32_t{1} << field_count) - 1;
  /// Whether steps now may be kept as text: most are passed over in the end.
  bool may_defer() const { return !check_ && run_.keeper.late() && !pending_ && !restarting_ && !anew_; }
  /// The step that stands in `text`, every number of which is finite and not below 0; `again` reads the rest,
  /// if it is kept, and lives as long as this. False: give it whole.
  bool defer(std::string_view text, const Glance& glance, const ReadAgain& again);
  void unread(std::string_view text);
  /// The line says that lines were left out of the log.
  void left_out() {
    if (run_.record.elisions.size() < RunRecord::most_elisions) run_.record.elisions.push_back(line_);
    run_.gaps.left_out(line_);
  }
  /// The line may hold up to so many steps, which are there, but cannot be read.
  void hidden(std::int64_t steps) {
    if (run_.record.hidden_steps.size() < RunRecord::most_elisions)
      run_.record.hidden_steps.push_back({line_, steps});
    run_.gaps.hidden(line_, static_cast<double>(steps));
  }
  /// Number of the last step of the first rank.
  std::optional<double> last_number() const {
    return run_.numbers.empty() ? std::nullopt : std::optional(run_.numbers.front().second.second);
  }
  /// The loss of the step that comes next is null.
  void null_loss() {
    if (run_.record.null_losses.count++ == 0) run_.record.null_losses.line = line_;
  }
  /// The line holds a part of the step that is being put together.
  void took() { ++takings_; }
  /// Changes whenever a line said something: it stays where a line is passed over.
  std::int64_t takings() const { return takings_; }
  /// What was taken since then was of a line before this one.
  void took_before(std::int64_t takings) { takings_ = takings; }
  /// Settings and names that lines said, doubles included.
  std::int64_t settings_seen() const { return settings_; }
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
    GapCounter gaps;
    LineWatch watch;
    bool behind_apart = false;                          // the line before stands apart
    bool skips_cut_off = false, skips_counted = false;  // on some lines
    /// First and last number of each rank's steps (rank -1: lines that name none).
    std::vector<std::pair<double, std::pair<double, double>>> numbers;
    std::int64_t of_first_rank = 0;  // steps
    RunMarks marks = no_marks;       // as the last lines that have them say
    std::optional<double> first_epoch;
    /// Ranks that do not say which they are, where the first steps show that several print behind one prefix.
    struct Unnamed {
      std::size_t ranks;
      double last, second_last;  ///< highest numbers, of which lines of others may follow
    };
    /// By the rank that the prefix names, -1 where there is none: later lines of a step that is there already
    /// are those of others.
    std::map<double, Unnamed> unnamed_ranks;
    bool looked = false;
  };
  RunRecord& header();
  void settle(const Step& step, const RunMarks& marks, double rank, double number);
  void count(double rank, double number, std::int64_t line);
  bool odd(const Step& step);
  bool stands_apart(const WatchedNumbers& numbers);
  bool of_another_rank(double rank, double number);
  void look_for_unnamed_ranks();
  bool falls_back(double number);
  bool continues(double rank, double number) const;
  bool of_another_run(const RunMarks& marks, double rank, double number) const;
  void remember(const RunMarks& marks);
  void adopt_pending();
  void close();
  void hold_places();
  bool is_whole() const { return trainer_called(format_.name).whole_record; }

  std::string origin_;
  std::int64_t line_ = 0;
  int rank_ = -1;
  Format format_;
  StepCheck check_;
  bool keep_odd_, keep_apart_;
  void (*written_soon_)(void*, std::size_t);
  double last_number_ = -1e300;
  std::vector<RunRecord> done_;
  Run run_;
  std::optional<RunRecord> pending_;  // a header seen after steps
  std::optional<Restart> restarting_;
  bool anew_ = false;  // no checkpoint is behind the step that comes next
  std::int64_t unread_ = 0, takings_ = 0, settings_ = 0;
  std::vector<UnreadLine> quotes_;
  CutLines cut_;
  std::vector<record::StatedPlace> places_;
};

}  // namespace assay::spec::audit
