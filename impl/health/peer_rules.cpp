#include "impl/health/peer_rules.hpp"

#include <algorithm>
#include <cstdio>
#include <map>

namespace assay::impl {

namespace {
bool gpu_is_behind(const RowView& row) { return row.reached < row.given; }
bool held_up(const RowView& row) { return row.waits || gpu_is_behind(row); }

/// The loader's thread reads ahead: its calls hold the rank up where the trainer's thread waits for a batch,
/// or has not begun.
bool waits_outside(const RowView& row) {
  if (row.outside != Outside::data) return row.outside != Outside::nothing;
  return row.doing == Doing::data_wait || row.doing == Doing::starting;
}

/// The rank that has come less far in the steps than every other, by `count` within one; none where several
/// are as far behind.
std::optional<std::size_t> behind_alone(const std::vector<SeenRank>& ranks, std::int64_t RowView::*count) {
  const auto progress = [&](std::size_t r) { return std::pair(ranks[r].row.step, ranks[r].row.*count); };
  std::size_t behind = 0, as_far = 0;  // ranks as far as that one
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    if (progress(r) < progress(behind)) behind = r, as_far = 0;
    as_far += progress(r) == progress(behind);
  }
  if (as_far > 1) return {};
  return behind;
}
}  // namespace

WatchLimits limits_of(double stall, double outside) {
  return {.silence = stall / 2, .stall = stall, .steps = 5, .outside = std::max(stall, outside)};
}

PeerRules::PeerRules(const WatchLimits& limits, int ranks, int self)
    : limits_(limits), self_(self), memory_(static_cast<std::size_t>(ranks)) {}

std::optional<Finding> PeerRules::look(double seconds, const std::vector<SeenRank>& ranks) {
  // A look that comes late says nothing of the others in between.
  constexpr double longest_look = 0.5;
  const double passed = std::min(seconds, longest_look);
  for (std::size_t r = 0; r < memory_.size(); ++r) {
    if (!ranks[r].visible) continue;
    Memory& memory = memory_[r];
    const RowView& row = ranks[r].row;
    memory.silent = row.beat == memory.beat ? memory.silent + passed : 0;
    memory.still = row.progress == memory.progress ? memory.still + passed : 0;
    memory.beat = row.beat, memory.progress = row.progress;
    memory.quiet = std::max(0.0, memory.quiet - passed);
  }
  if (const auto finding = ended(ranks)) return finding;
  if (const auto finding = stands_still(ranks)) return finding;
  return all_wait(ranks);
}

std::optional<Finding> PeerRules::ended(const std::vector<SeenRank>& ranks) const {
  // A rank that says why it ends comes before those that end because of it.
  for (const auto& [standing, how] :
       {std::pair{Standing::failed, Lost::failed}, std::pair{Standing::quit, Lost::quit}})
    for (std::size_t r = 0; r < ranks.size(); ++r)
      if (ranks[r].visible && ranks[r].row.standing == standing) return Finding{static_cast<int>(r), how, 0};
  for (std::size_t r = 0; r < ranks.size(); ++r)
    if (ranks[r].visible && ranks[r].gone && ranks[r].row.standing == Standing::running &&
        static_cast<int>(r) != self_)
      return Finding{static_cast<int>(r), Lost::died, 0};
  return {};
}

std::optional<Finding> PeerRules::stands_still(const std::vector<SeenRank>& ranks) const {
  for (std::size_t r = 0; r < ranks.size(); ++r)
    if (ranks[r].visible && ranks[r].row.standing == Standing::running && static_cast<int>(r) != self_ &&
        memory_[r].silent > limits_.silence)
      return Finding{static_cast<int>(r), Lost::silent, memory_[r].silent};
  for (std::size_t r = 0; r < ranks.size(); ++r)
    if (ranks[r].visible && ranks[r].row.standing == Standing::running && !held_up(ranks[r].row) &&
        memory_[r].still > stall_of(ranks[r].row))
      return Finding{static_cast<int>(r), Lost::stalled, memory_[r].still};
  return {};
}

std::optional<Finding> PeerRules::all_wait(const std::vector<SeenRank>& ranks) const {
  bool for_ranks = true;  // and none for its GPU alone
  double shortest = 1e300;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const RowView& row = ranks[r].row;
    if (!ranks[r].visible || row.standing != Standing::running || !held_up(row) ||
        memory_[r].still <= stall_of(row))
      return {};
    for_ranks = for_ranks && row.waits;
    shortest = std::min(shortest, memory_[r].still);
  }
  if (const auto rank = behind_alone(ranks, &RowView::reached); rank && gpu_is_behind(ranks[*rank].row))
    return Finding{static_cast<int>(*rank), Lost::gpu_behind, shortest};
  // Calls that wait for room in a queue say nothing of who began how much.
  if (const auto rank = behind_alone(ranks, &RowView::of_step); rank && for_ranks)
    return Finding{static_cast<int>(*rank), Lost::deadlock, shortest};
  return Finding{no_rank, Lost::standstill, shortest};
}

std::vector<Slow> PeerRules::slow(const std::vector<SeenRank>& ranks) {
  std::vector<Slow> found;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const RowView& row = ranks[r].row;
    Memory& memory = memory_[r];
    if (!ranks[r].visible || row.standing != Standing::running || !waits_outside(row) || memory.quiet > 0 ||
        memory.still <= longest_in_a_step(row))
      continue;
    found.push_back({static_cast<int>(r), memory.still});
    memory.quiet = limits_.outside;
  }
  return found;
}

double PeerRules::longest_in_a_step(const RowView& row) const {
  return std::max(limits_.stall, limits_.steps * row.longest_step);
}

double PeerRules::stall_of(const RowView& row) const {
  const bool known = row.steps_done > 1 && row.doing != Doing::starting && row.doing != Doing::ending;
  const double in_a_step = longest_in_a_step(row);
  return known && !waits_outside(row) ? in_a_step : std::max(limits_.outside, in_a_step);
}

namespace {
/// "20 s".
std::string in_seconds(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.0f s", seconds);
  return text;
}

/// "step 12, phase backward, last collective 340, all-reduce of 4096 bytes".
std::string position_of(const RowView& row) {
  const std::string collective =
      row.collective == Collective::none
          ? "before its first collective"
          : "last collective " + std::to_string(row.collectives) + ", " + to_string(row.collective) +
                (row.bytes > 0 ? " of " + std::to_string(row.bytes) + " bytes" : "");
  return "step " + std::to_string(row.step) + ", phase " + to_string(row.doing) + ", " + collective;
}

/// "rank 3 (host node0, CPU)".
std::string name_of(int rank, const RowView& row, const std::string& host) {
  return "rank " + std::to_string(rank) + " (host " + host + ", " +
         (row.gpu[0] ? std::string(row.gpu) : "CPU") + ")";
}

/// "ranks 0-2, 5"; `ranks` ascend.
std::string ranges(const std::vector<std::size_t>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    text += (i > 0 ? ", " : "") + std::to_string(ranks[i]) +
            (last > i ? "-" + std::to_string(ranks[last]) : std::string());
    i = last + 1;
  }
  return text;
}
}  // namespace

std::string describe(const Finding& finding, const RowView& row, const std::string& host) {
  const std::string seconds = in_seconds(finding.seconds);
  std::string what;
  switch (finding.how) {
    case Lost::died:
      what = "died: its process is gone";
      break;
    case Lost::quit:
      what = "left: its process exits in the middle of the run";
      break;
    case Lost::failed:
      what = std::string("failed: ") + row.reason;
      break;
    case Lost::silent:
      what = "gives no sign of life for " + seconds + ": it is stopped, or its host hangs";
      break;
    case Lost::stalled:
      what = waits_outside(row) ? "is alive, but has waited for " + to_string(row.outside) + " for " + seconds
                                : "is alive, but has not gone on for " + seconds;
      break;
    case Lost::gpu_behind:
      what = "is alive, but its GPU has not gone on for " + seconds + ": it has come to " +
             std::to_string(row.reached) + " of the " + std::to_string(row.given) +
             " collectives that it was given in this step, every other GPU to more: it hangs, or what it "
             "waits for";
      break;
    case Lost::deadlock:
      what = "has begun the fewest collectives, and all ranks wait for each other for " + seconds;
      break;
    case Lost::standstill:
      break;  // of no rank
  }
  return name_of(finding.rank, row, host) + " " + what + "; " + position_of(row) +
         "; the other ranks stop with exit code 77";
}

std::string describe_slow(const Slow& slow, const RowView& row, const std::string& host,
                          const WatchLimits& limits) {
  return name_of(slow.rank, row, host) + " has waited for " + to_string(row.outside) + " for " +
         in_seconds(slow.seconds) + "; " + position_of(row) +
         "; the other ranks wait for it, and end after " + in_seconds(limits.outside) +
         " without progress (parallel.stall_seconds)";
}

std::string describe_standstill(const Finding& finding, const std::vector<SeenRank>& ranks) {
  constexpr std::size_t most_positions = 6, most_letters = 120;  // one line, of however many ranks
  std::map<std::pair<std::int64_t, std::string>, std::vector<std::size_t>> positions;
  for (std::size_t r = 0; r < ranks.size(); ++r)
    positions[{ranks[r].row.collectives, position_of(ranks[r].row)}].push_back(r);
  std::string where;
  std::size_t reported = 0;
  for (const auto& [position, those] : positions) {
    std::string who = positions.size() == 1 ? "all at" : ranges(those) + " at";
    if (who.size() > most_letters) who = std::to_string(those.size()) + " ranks at";
    where += (where.empty() ? "" : "; ") + who + " " + position.second;
    if (++reported == most_positions && positions.size() > reported) {
      where += "; " + std::to_string(positions.size() - reported) + " more groups of ranks";
      break;
    }
  }
  return "all " + std::to_string(ranks.size()) + " ranks wait for each other for " +
         in_seconds(finding.seconds) + ", and none is behind alone: " + where +
         "; the cause is not known: a GPU, a link between them, or their collective library; all ranks stop "
         "with exit code 77";
}

}  // namespace assay::impl
