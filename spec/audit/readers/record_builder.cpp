#include "spec/audit/readers/record_builder.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "spec/audit/readers/fragments.hpp"

namespace assay::spec::audit {

void StepKeeper::Late::keep(const Step& step, std::uint32_t fields_of_step, std::int64_t at,
                            bool contradicts_itself) {
  index = at;
  line = step.line;
  contradicts = contradicts_itself;
  fields = 0;
  text.clear();
  numbers.resize(static_cast<std::size_t>(std::popcount(fields_of_step)));
  Printed* next = numbers.data();
  for (std::uint32_t left = fields_of_step; left != 0; left &= left - 1) {
    const auto& number = step.fields[static_cast<std::size_t>(std::countr_zero(left))];
    if (!number) continue;
    fields |= left & (0 - left);
    *next++ = *number;
  }
}

Step StepKeeper::Late::step() const {
  Step out;
  out.line = line;
  const Printed* next = numbers.data();
  for (std::size_t i = 0; i < field_count; ++i)
    if (fields >> i & 1) out.fields[i] = *next++;
  return out;
}

/// The place of a step in the tail; the oldest one there is passed on.
StepKeeper::Late& StepKeeper::next_late() {
  if (tail_.size() < quarter) {
    if (tail_.empty()) tail_.reserve(quarter);
    return tail_.emplace_back();
  }
  Late& oldest = tail_[oldest_];
  pass_on(oldest);
  oldest_ = (oldest_ + 1) % quarter;
  return oldest;
}

void StepKeeper::add(std::string_view text, std::int64_t line, int rank, bool contradicts,
                     const ReadAgain& again) {
  again_ = &again;
  Late& late = next_late();
  late.index = seen_++;
  late.line = line;
  late.rank = rank;
  late.contradicts = contradicts;
  late.text.assign(text);
}

/// What stands there as text is read now.
Step StepKeeper::step_of(const Late& late) const {
  if (late.text.empty()) return late.step();
  Step step;
  (*again_)(late.text, late.line, step);
  step.line = late.line;
  if (late.rank >= 0 && !step[Field::rank]) step[Field::rank] = exactly(late.rank, late.line);
  return step;
}

void StepKeeper::add(const Step& step, std::uint32_t fields, bool contradicts) {
  const std::int64_t index = seen_++;
  // A long log: room for all that will ever be kept. Pages are taken only when they are written.
  if (index == 64) head_.reserve(RunRecord::kept_steps + most_contradicting + 1);
  if (head_.size() < quarter) {
    head_.push_back(step);
    return;
  }
  next_late().keep(step, fields, index, contradicts);
}

/// A step that left the tail: kept when it falls on the stride; when the middle is full, the stride doubles.
void StepKeeper::pass_on(Late& late) {
  const bool on_stride = (passed_++ & (stride_ - 1)) == 0;  // a power of two
  if (on_stride) {
    if (middle_.empty()) middle_.reserve(2 * quarter + 1);
    middle_.push_back(late);
    if (middle_.size() > 2 * quarter) {
      for (std::size_t i = 1; i < middle_.size(); ++i) {
        if (i % 2 == 0)
          middle_[i / 2] = std::move(middle_[i]);
        else if (middle_[i].contradicts && contradicting_.size() < most_contradicting)
          contradicting_.push_back(std::move(middle_[i]));
      }
      middle_.resize(quarter + 1);
      stride_ *= 2;
    }
  } else if (late.contradicts && contradicting_.size() < most_contradicting) {
    contradicting_.push_back(late);
  }
}

std::vector<Step> StepKeeper::finish() {
  std::vector<Step> steps = std::move(head_);
  // Both are in the order of the log.
  const auto before = [](const Late& a, const Late& b) { return a.index < b.index; };
  std::sort(contradicting_.begin(), contradicting_.end(), before);
  auto extra = contradicting_.begin();
  for (const Late& late : middle_) {
    for (; extra != contradicting_.end() && before(*extra, late); ++extra) steps.push_back(step_of(*extra));
    steps.push_back(step_of(late));
  }
  for (; extra != contradicting_.end(); ++extra) steps.push_back(step_of(*extra));
  for (std::size_t i = 0; i < tail_.size(); ++i)
    steps.push_back(step_of(tail_[(oldest_ + i) % tail_.size()]));
  return steps;
}

void GapCounter::count(double distance, std::int64_t line) {
  constexpr std::size_t most = 64;
  for (StepGap& gap : gaps_)
    if (gap.distance == distance) {
      ++gap.count;
      return;
    }
  if (gaps_.size() < most) gaps_.push_back({distance, 1, highest_, line});
}

RecordBuilder::RecordBuilder(std::string origin, Format format, const ReadOptions& options)
    : origin_(std::move(origin)),
      format_(std::move(format)),
      check_(options.step_check),
      keep_odd_(options.keep_odd_steps) {}

/// The record that a header line belongs to: of the run before its first step, else of the next one.
RunRecord& RecordBuilder::header() {
  if (run_.keeper.seen() == 0) return run_.record;
  if (!pending_) pending_.emplace();
  return *pending_;
}

void RecordBuilder::setting(Setting setting, const std::optional<Printed>& value) {
  if (value) header()[setting] = value;
}

void RecordBuilder::name(std::string RunRecord::*which, std::string_view value) {
  if (!value.empty()) header().*which = std::string(value.substr(0, 200));
}

void RecordBuilder::summary(Setting setting, const std::optional<Printed>& value) {
  if (value) run_.record[setting] = value;
}

void RecordBuilder::restart(std::optional<std::int64_t> steps) { restarting_ = Restart{line_, steps}; }

const std::optional<Printed>& RecordBuilder::current(Setting setting) const {
  if (pending_ && (*pending_)[setting]) return (*pending_)[setting];
  return run_.record[setting];
}

namespace {

double number_of(const std::optional<Printed>& printed, double without) {
  return printed ? printed->value : without;
}

}  // namespace

/// Whether a step after a header, or with a smaller number, still belongs to the run.
bool RecordBuilder::continues(double rank, double number) const {
  if (pending_ && !agree(run_.record, *pending_)) return false;
  if (restarting_) return true;
  for (const auto& [of_rank, range] : run_.numbers) {
    if (of_rank != rank) continue;
    // Back at the first number, or before it: begun anew. (A line printed twice is no new run.)
    const bool anew = number <= range.first && range.second > range.first;
    return !anew && !(pending_ && number <= range.first);
  }
  return true;
}

void RecordBuilder::adopt_pending() {
  for (std::size_t i = 0; i < setting_count; ++i)
    if (!run_.record.settings[i]) run_.record.settings[i] = pending_->settings[i];
  for (std::string RunRecord::*which :
       {&RunRecord::model, &RunRecord::gpu, &RunRecord::device, &RunRecord::dtype, &RunRecord::schedule,
        &RunRecord::parallelism, &RunRecord::weights})
    if ((run_.record.*which).empty()) run_.record.*which = (*pending_).*which;
  pending_.reset();
}

/// Decides, when a step comes, what a header before it was.
void RecordBuilder::settle(const Step& step) {
  if (run_.keeper.seen() == 0) {
    if (restarting_ && restarting_->step.value_or(0) > 0) run_.record.restarts.push_back(*restarting_);
    restarting_.reset();
    return;
  }
  if (continues(number_of(step[Field::rank], -1), number_of(step[Field::step], std::nan("")))) {
    if (restarting_)
      run_.record.restarts.push_back(*restarting_);
    else if (pending_)
      run_.record.restarts.push_back({step.line, std::nullopt});
    if (pending_) adopt_pending();
  } else {
    std::optional<RunRecord> next = std::move(pending_);
    pending_.reset();
    close();
    if (next) run_.record = std::move(*next);
  }
  restarting_.reset();
}

void RecordBuilder::count(double rank, double number, std::int64_t line) {
  if (run_.numbers.empty() || run_.numbers.front().first == rank) run_.gaps.add(number, line);
  if (!run_.numbers.empty() && run_.numbers.front().first == rank) {
    run_.numbers.front().second.second = number;
    return;
  }
  auto of_rank = std::find_if(run_.numbers.begin(), run_.numbers.end(),
                              [&](const auto& entry) { return entry.first == rank; });
  if (of_rank == run_.numbers.end() && run_.numbers.size() < 4096)
    run_.numbers.push_back({rank, {number, number}});
  else if (of_rank != run_.numbers.end())
    of_rank->second.second = number;
}

bool RecordBuilder::falls_back(double number) {
  const bool back = number <= last_number_;
  last_number_ = number;
  return back;
}

/// ReadOptions::keep_odd_steps.
bool RecordBuilder::odd(const Step& step) {
  const auto &number = step[Field::step], &loss = step[Field::loss], &mfu = step[Field::mfu];
  const bool back = number && falls_back(number->value);
  const auto impossible = [&](Field field) {
    const auto& value = step[field];
    return value && (value->value < 0 || std::isinf(value->value));
  };
  return back || impossible(Field::seconds) || impossible(Field::tokens_per_second) ||
         impossible(Field::flops_rate) || (loss && (!std::isfinite(loss->value) || loss->value < 0)) ||
         (mfu && mfu->low > 1);
}

bool RecordBuilder::defer(std::string_view text, const Glance& glance, const ReadAgain& again) {
  const double rank = glance.rank == -1 ? rank_ : glance.rank, number = glance.number;
  if (!continues(rank, number)) return false;
  count(rank, number, line_);
  const bool back = !std::isnan(number) && falls_back(number);
  run_.keeper.add(text, line_, rank_, keep_odd_ && (back || glance.mfu_low > 1), again);
  run_.record.steps_seen = run_.keeper.seen();
  return true;
}

void RecordBuilder::step(Step& step, std::uint32_t fields) {
  if (step.line == 0) step.line = line_;
  if (rank_ >= 0 && !step[Field::rank]) step[Field::rank] = exactly(static_cast<double>(rank_), step.line);
  const double rank = number_of(step[Field::rank], -1), number = number_of(step[Field::step], std::nan(""));
  if (pending_ || restarting_ || (run_.keeper.seen() > 0 && !continues(rank, number))) settle(step);
  count(rank, number, step.line);
  if (run_.keeper.seen() == 0) {
    run_.record.origin = origin_;
    run_.record.format = format_;
  }
  const bool contradicts = check_ ? check_(run_.record, step) : keep_odd_ && odd(step);
  constexpr std::uint32_t rank_bit = std::uint32_t{1} << static_cast<int>(Field::rank);
  run_.keeper.add(step, fields | rank_bit, contradicts);
  run_.record.steps_seen = run_.keeper.seen();
}

void RecordBuilder::unread(std::string_view text) {
  ++unread_;
  if (quotes_.size() < 10) quotes_.push_back({line_, escaped(text)});
}

void RecordBuilder::close() {
  run_.record.origin = origin_;
  run_.record.format = format_;
  run_.record.steps_seen = run_.keeper.seen();
  run_.record.steps = run_.keeper.finish();
  run_.record.gaps = run_.gaps.gaps();
  run_.record.unread_lines = std::exchange(unread_, 0);
  run_.record.unread_quotes = std::exchange(quotes_, {});
  done_.push_back(std::move(run_.record));
  run_ = Run();
}

std::vector<RunRecord> RecordBuilder::finish(std::int64_t lines, bool truncated) {
  if (pending_) {
    if (agree(run_.record, *pending_))
      adopt_pending();
    else
      pending_.reset();  // a start of which nothing was logged
  }
  close();
  std::vector<RunRecord> runs = join_fragments(std::move(done_));
  for (std::size_t i = 0; i < runs.size(); ++i) {
    runs[i].lines = lines;
    if (runs.size() > 1)
      runs[i].origin += " (run " + std::to_string(i + 1) + " of " + std::to_string(runs.size()) + ")";
  }
  runs.back().truncated = truncated;
  return runs;
}

}  // namespace assay::spec::audit
