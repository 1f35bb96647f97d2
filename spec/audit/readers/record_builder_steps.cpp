// The steps of a run, of all its ranks: which are kept.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "spec/audit/readers/record_builder.hpp"
#include "spec/audit/unnamed_ranks.hpp"

namespace assay::spec::audit {

void GapCounter::count(double distance, std::int64_t line) {
  constexpr std::size_t most = 64;
  for (StepGap& gap : gaps_)
    if (gap.distance == distance) {
      ++gap.count;
      return;
    }
  if (gaps_.size() < most) gaps_.push_back({distance, 1, highest_, line});
}

double GapCounter::usual() const {
  const auto most = std::max_element(gaps_.begin(), gaps_.end(),
                                     [](const StepGap& a, const StepGap& b) { return a.count < b.count; });
  return most == gaps_.end() ? HUGE_VAL : most->distance;
}

namespace {

double number_of(const std::optional<Printed>& printed, double without) {
  return printed ? printed->value : without;
}

RunMarks marks_of(const Step& step) {
  const double none = std::nan("");
  return {number_of(step[Field::elapsed], none), number_of(step[Field::epoch], none),
          number_of(step[Field::planned_steps], none), number_of(step[Field::step_sequences], none)};
}

}  // namespace

void RecordBuilder::count(double rank, double number, std::int64_t line) {
  const bool first = run_.numbers.empty() || run_.numbers.front().first == rank;
  if (first) {
    run_.gaps.add(number, line);
    ++run_.of_first_rank;
  }
  if (first && !run_.numbers.empty()) {
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

/// Once the first steps are there: whether those of a rank, or all where none is named, stand there as often
/// as there are ranks behind that prefix.
void RecordBuilder::look_for_unnamed_ranks() {
  if (run_.looked || !run_.keeper.all_first()) return;
  run_.looked = true;
  std::map<double, std::vector<const Step*>> of_ranks;
  bool rises = true;
  for (const Step& step : run_.keeper.first()) {
    std::vector<const Step*>& lines = of_ranks[number_of(step[Field::rank], -1)];
    rises = rises && step[Field::step] &&
            (lines.empty() || (*lines.back())[Field::step]->value < step[Field::step]->value);
    lines.push_back(&step);
  }
  if (rises) return;
  run_.record.format = format_;
  std::set<const Step*> firsts;
  for (const auto& [rank, lines] : of_ranks) {
    const UnnamedRanks seen =
        without_unnamed_ranks(lines, ranks_that_may_print(run_.record, of_ranks.size()));
    firsts.insert(seen.lines.begin(), seen.lines.end());
    if (seen.ranks == 1) continue;
    const auto number_at = [&](std::size_t from_last) {
      return seen.lines.size() > from_last ? (*seen.lines.rbegin()[from_last])[Field::step]->value : -1e300;
    };
    run_.unnamed_ranks[rank] = {seen.ranks, number_at(0), number_at(1)};
    run_.record.ranks_maybe_copies |= seen.maybe_copies;
    if (rank == run_.numbers.front().first) run_.of_first_rank = static_cast<std::int64_t>(seen.lines.size());
  }
  if (run_.unnamed_ranks.empty()) return;
  std::vector<Step> kept;
  for (const Step& step : run_.keeper.first())
    if (firsts.contains(&step)) kept.push_back(step);
  run_.keeper.replace_first(std::move(kept));
}

/// Of ranks that do not say which they are, some are a step ahead of others.
bool RecordBuilder::of_another_rank(double rank, double number) {
  if (!run_.looked && run_.keeper.late()) look_for_unnamed_ranks();
  const auto found = run_.unnamed_ranks.find(rank);
  if (found == run_.unnamed_ranks.end()) return false;
  auto& [count, last, second_last] = found->second;
  if (number == last || number == second_last) return true;
  if (number > last) second_last = std::exchange(last, number);
  return false;
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

/// ReadOptions::keep_steps_apart, of a step behind the first ones.
bool RecordBuilder::stands_apart(const WatchedNumbers& numbers) {
  const bool apart = run_.watch.apart(numbers);
  if (apart) {
    ++run_.record.steps_apart;
    run_.keeper.keep_last();
  }
  return std::exchange(run_.behind_apart, apart) || apart;
}

bool RecordBuilder::defer(std::string_view text, const Glance& glance, const ReadAgain& again) {
  const double rank = glance.rank == -1 ? rank_ : glance.rank, number = glance.number;
  const bool rises = !run_.numbers.empty() && run_.numbers.front().first == rank &&
                     number > run_.numbers.front().second.second;
  if (!rises && !continues(rank, number)) return false;  // no header and no restart is waiting
  if (glance.marked && of_another_run(glance.marks, rank, number)) return false;
  if (!run_.looked) look_for_unnamed_ranks();
  if (!run_.keeper.late()) return false;  // others' lines among the first steps have made room
  ++takings_;
  if (of_another_rank(rank, number)) return true;
  count(rank, number, line_);
  if (glance.marked) remember(glance.marks);
  const bool back = !std::isnan(number) && falls_back(number);
  bool contradicts = keep_odd_ && (back || glance.mfu_low > 1);
  if (keep_apart_) contradicts |= stands_apart(glance.watched);
  run_.keeper.add(text, line_, rank_, contradicts, again);
  run_.record.steps_seen = run_.keeper.seen();
  return true;
}

void RecordBuilder::step(Step& step, std::uint32_t fields) {
  if (step.line == 0) step.line = line_;
  if (rank_ >= 0 && !step[Field::rank]) step[Field::rank] = exactly(static_cast<double>(rank_), step.line);
  const double rank = number_of(step[Field::rank], -1), number = number_of(step[Field::step], std::nan(""));
  const RunMarks marks = marks_of(step);
  if (pending_ || restarting_ || anew_ ||
      (run_.keeper.seen() > 0 && (!continues(rank, number) || of_another_run(marks, rank, number))))
    settle(step, marks, rank, number);
  ++takings_;
  if (of_another_rank(rank, number)) return;
  count(rank, number, step.line);
  remember(marks);
  run_.skips_counted = run_.skips_counted || step[Field::skipped];
  if (run_.keeper.seen() == 0) {
    run_.record.origin = origin_;
    run_.record.format = format_;
    run_.keeper.tell(written_soon_);
  }
  bool contradicts = check_ ? check_(run_.record, step) : keep_odd_ && odd(step);
  if (keep_apart_ && run_.keeper.late())
    contradicts |= stands_apart(watched_numbers(step));
  else if (keep_apart_)
    run_.watch.learn(step);
  constexpr std::uint32_t rank_bit = std::uint32_t{1} << static_cast<int>(Field::rank);
  run_.keeper.add(step, fields | rank_bit, contradicts);
  run_.record.steps_seen = run_.keeper.seen();
}

}  // namespace assay::spec::audit
