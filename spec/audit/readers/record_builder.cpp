#include "spec/audit/readers/record_builder.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "spec/audit/identities.hpp"
#include "spec/audit/readers/fragments.hpp"
#include "spec/audit/readers/lone_gpu_rate.hpp"

namespace assay::spec::audit {

RecordBuilder::RecordBuilder(std::string origin, Format format, const ReadOptions& options)
    : origin_(std::move(origin)),
      format_(std::move(format)),
      check_(options.step_check),
      keep_odd_(options.keep_odd_steps),
      keep_apart_(options.keep_steps_apart),
      written_soon_(options.written_soon),
      places_(options.places) {}

/// The record that a header line belongs to: of the run before its first step, else of the next one.
RunRecord& RecordBuilder::header() {
  ++takings_;
  ++settings_;
  if (run_.keeper.seen() == 0) return run_.record;
  if (!pending_) pending_.emplace();
  return *pending_;
}

void RecordBuilder::setting(Setting setting, const std::optional<Printed>& value) {
  if (value) header()[setting] = value;
}

void RecordBuilder::setting_again(Setting setting, const std::optional<Printed>& value) {
  RunRecord& here = header();
  // -1 and 0 are some trainers' words for "not set".
  const auto set = [](const std::optional<Printed>& number) { return number && number->value > 0; };
  if (const auto& before = here[setting]; set(before) && set(value) && before->line != value->line) {
    ++here.settings_said_again;
    if (before->high < value->low || value->high < before->low)
      here.said_twice.push_back({setting, *before, *value});
  }
  this->setting(setting, value);
}

void RecordBuilder::name(std::string RunRecord::*which, std::string_view value) {
  if (!value.empty()) header().*which = std::string(value.substr(0, 200));
}

void RecordBuilder::summary(Setting setting, const std::optional<Printed>& value) {
  ++takings_;
  if (value) run_.record[setting] = value;
}

void RecordBuilder::restart(std::optional<std::int64_t> steps) {
  ++takings_;
  restarting_ = Restart{line_, steps};
  anew_ = false;
}

void RecordBuilder::begin_anew() {
  ++takings_;
  anew_ = true;
}

const std::optional<Printed>& RecordBuilder::current(Setting setting) const {
  if (pending_ && (*pending_)[setting]) return (*pending_)[setting];
  return run_.record[setting];
}

/// A time since the start is less, a time stamp with its date more [s].
constexpr double dated = 1e9 / 2;

/// Whether a step after a header, or with a smaller number, still belongs to the run.
bool RecordBuilder::continues(double rank, double number) const {
  if (pending_ && !agree(run_.record, *pending_)) return false;
  if (restarting_) return true;
  for (const auto& [of_rank, range] : run_.numbers) {
    if (of_rank != rank) continue;
    // Back at the first number, or before it: begun anew. (A line printed twice is no new run.)
    const bool anew = number <= (anew_ ? range.second : range.first) && range.second > range.first;
    return !anew && !(pending_ && number <= range.first);
  }
  return true;
}

/// An earlier step of other planned steps and another batch: a run may be resumed for longer, or with another
/// batch, but hardly both from before its last line. Nor does a stamp fall back by days.
bool RecordBuilder::of_another_run(const RunMarks& marks, double rank, double number) const {
  constexpr double days = 2 * 86'400;  // no time zone, and no clock that is set, makes as much
  const RunMarks& before = run_.marks;
  if (marks.stamp > dated && marks.stamp < before.stamp - days) return true;
  // Lines that name no step are distinguished by their epochs, as others by their numbers.
  if (run_.first_epoch && std::isnan(number))
    if (anew_ ? marks.epoch <= before.epoch
              : marks.epoch <= *run_.first_epoch && before.epoch > *run_.first_epoch)
      return true;
  for (const double plan : {marks.planned, marks.batch, before.planned, before.batch})
    if (std::isnan(plan)) return false;
  if (marks.planned == before.planned || marks.batch == before.batch) return false;
  return std::any_of(run_.numbers.begin(), run_.numbers.end(), [&](const auto& of_rank) {
    return of_rank.first == rank && number < of_rank.second.second;
  });
}

/// What the step that was taken last says.
void RecordBuilder::remember(const RunMarks& marks) {
  const auto keep = [](double& here, double last) {
    if (!std::isnan(last)) here = last;
  };
  if (!run_.first_epoch && std::isfinite(marks.epoch)) run_.first_epoch = marks.epoch;
  if (std::isfinite(marks.epoch)) run_.marks.epoch = marks.epoch;
  keep(run_.marks.stamp, marks.stamp);
  keep(run_.marks.planned, marks.planned);
  keep(run_.marks.batch, marks.batch);
}

void RecordBuilder::adopt_pending() {
  for (std::size_t i = 0; i < setting_count; ++i)
    if (!run_.record.settings[i]) run_.record.settings[i] = pending_->settings[i];
  for (std::string RunRecord::*which :
       {&RunRecord::model, &RunRecord::gpu, &RunRecord::device, &RunRecord::dtype, &RunRecord::schedule,
        &RunRecord::parallelism, &RunRecord::weights, &RunRecord::model_file})
    if ((run_.record.*which).empty()) run_.record.*which = (*pending_).*which;
  if (!run_.record.mlp) run_.record.mlp = pending_->mlp;
  if (!run_.record.tensors) run_.record.tensors = pending_->tensors;
  if (!run_.record.first_rank) run_.record.first_rank = pending_->first_rank;
  if (!run_.record.tied_embeddings) run_.record.tied_embeddings = pending_->tied_embeddings;
  if (!run_.record.qk_norm) run_.record.qk_norm = pending_->qk_norm;
  if (!run_.record.norm) run_.record.norm = pending_->norm;
  run_.record.skips_untold = run_.record.skips_untold || pending_->skips_untold;
  if (!run_.record.definition) run_.record.definition = pending_->definition;
  std::move(pending_->said_twice.begin(), pending_->said_twice.end(),
            std::back_inserter(run_.record.said_twice));
  pending_.reset();
}

/// Decides, when a step comes, what a header before it was.
void RecordBuilder::settle(const Step& step, const RunMarks& marks, double rank, double number) {
  if (run_.keeper.seen() == 0) {
    if (restarting_ && restarting_->step.value_or(0) > 0) run_.record.restarts.push_back(*restarting_);
    restarting_.reset();
    anew_ = false;
    return;
  }
  if (continues(rank, number) && !of_another_run(marks, rank, number)) {
    if (restarting_)
      run_.record.restarts.push_back(*restarting_);
    else if (pending_)
      run_.record.restarts.push_back({step.line, std::nullopt});
    if (pending_) adopt_pending();
  } else {
    std::optional<RunRecord> next = std::move(pending_);
    pending_.reset();
    // Behind the last line of our own record, which says that it is the same run, lines are missing.
    const bool resumed = restarting_ && restarting_->step.value_or(0) > 0 &&
                         (is_whole() || static_cast<double>(*restarting_->step) <= last_number().value_or(0));
    close();
    if (next) {
      run_.record = std::move(*next);
      run_.record.later_start = resumed;
    }
  }
  restarting_.reset();
  anew_ = false;
}

void RecordBuilder::unread(std::string_view text) {
  ++takings_;
  ++unread_;
  // It may be a step's, which is there, or those of writers that did not wait for each other.
  constexpr std::size_t two_steps = 2, shortest_step = 64;
  hidden(static_cast<std::int64_t>(two_steps + text.size() / shortest_step));
  if (quotes_.size() < 10) quotes_.push_back({line_, escaped(text)});
}

void RecordBuilder::close() {
  look_for_unnamed_ranks();
  run_.record.ranks = std::max<std::int64_t>(1, std::ssize(run_.numbers));
  for (const auto& [rank, unnamed] : run_.unnamed_ranks)
    run_.record.ranks += static_cast<std::int64_t>(unnamed.ranks) - 1;
  run_.record.steps_of_rank = run_.of_first_rank;
  if (run_.skips_cut_off && !run_.skips_counted) run_.record.skips_untold = true;
  run_.record.origin = origin_;
  run_.record.format = format_;
  run_.record.steps_seen = run_.keeper.seen();
  run_.record.steps = run_.keeper.finish();
  take_lone_gpu_rate(run_.record);
  run_.record.steps_left_out = run_.keeper.left_out();
  run_.record.gaps = run_.gaps.gaps();
  run_.record.unread_lines = std::exchange(unread_, 0);
  run_.record.unread_quotes = std::exchange(quotes_, {});
  done_.push_back(std::move(run_.record));
  run_ = Run();
}

/// Those that did not come, of the run that the log ends with.
void RecordBuilder::hold_places() {
  if (places_.empty() || !is_whole()) return;
  std::vector<HeldIdentity>& all = run_.record.identities;
  all.resize(static_cast<std::size_t>(Identity::count_));
  HeldIdentity& chain = all[static_cast<std::size_t>(Identity::chain)];
  const auto count = std::ssize(places_);
  if (chain.contradicted == 0) {
    chain.printed = static_cast<double>(count), chain.recomputed = exact_interval(0);
    chain.why = "the line that " + places_.front().by + " was saved behind is missing: lines were cut out";
    chain.lines.push_back(line_);
  }
  chain.judged += count, chain.contradicted += count;
}

std::vector<RunRecord> RecordBuilder::finish(std::int64_t lines, bool truncated) {
  if (pending_) {
    if (agree(run_.record, *pending_))
      adopt_pending();
    else
      pending_.reset();  // a start of which nothing was logged
  }
  hold_places();
  close();
  std::vector<RunRecord> runs = join_fragments(std::move(done_));
  const auto number = std::ranges::count(runs, false, &RunRecord::later_start);
  std::int64_t run = 0, start = 1;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    runs[i].lines = lines;
    run += !runs[i].later_start;
    start = runs[i].later_start ? start + 1 + std::ssize(runs[i - 1].restarts) : 1;
    std::string which;
    if (number > 1) which = "run " + std::to_string(run) + " of " + std::to_string(number);
    if (start > 1 || (i + 1 < runs.size() && runs[i + 1].later_start))
      which += (which.empty() ? "" : ", ") + ("from start " + std::to_string(start));
    if (!which.empty()) runs[i].origin += " (" + which + ")";
  }
  runs.back().truncated = truncated;
  return runs;
}

}  // namespace assay::spec::audit
