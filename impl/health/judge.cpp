#include "impl/health/judge.hpp"

#include <algorithm>
#include <map>

#include "spec/text/quantity.hpp"

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
std::optional<std::size_t> behind_alone(const RankTable& ranks, std::int64_t RowView::*count) {
  const auto progress = [&](std::size_t r) { return std::pair(ranks[r].row.step, ranks[r].row.*count); };
  std::size_t behind = 0, as_far = 0;  // ranks as far as that one
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    if (progress(r) < progress(behind)) behind = r, as_far = 0;
    as_far += progress(r) == progress(behind);
  }
  if (as_far > 1) return {};
  return behind;
}

double longest_in_a_step(const RowView& row, const WatchLimits& limits) {
  return std::max(limits.stall, limits.steps * row.longest_step);
}

double stall_of(const RowView& row, const WatchLimits& limits) {
  const bool known = row.steps_done > 1 && row.doing != Doing::starting && row.doing != Doing::ending &&
                     row.doing != Doing::validation;
  const double in_a_step = longest_in_a_step(row, limits);
  return known && !waits_outside(row) ? in_a_step : std::max(limits.outside, in_a_step);
}

/// "20 s".
std::string in_seconds(double seconds) { return spec::fixed(seconds, 0) + " s"; }

/// "step 12, phase backward, last collective 340, all-reduce of 4096 bytes".
std::string position_of(const RowView& row) {
  const std::string collective =
      row.collective ? "last collective " + std::to_string(row.collectives) + ", " +
                           std::string(spec::facts_of(*row.collective).words) +
                           (row.bytes > 0 ? " of " + std::to_string(row.bytes) + " bytes" : "")
                     : "before its first collective";
  return "step " + std::to_string(row.step) + ", phase " + to_string(row.doing) + ", " + collective;
}

Found of_rank(const RankTable& table, std::size_t rank, Finding what, const std::string& text,
              const std::string& others = "the other ranks stop with exit code 77") {
  const SeenRank& seen = table[rank];
  const std::string gpu = seen.row.gpu[0] ? seen.row.gpu : "CPU";
  return {static_cast<int>(rank), what,
          "rank " + std::to_string(rank) + " (host " + seen.host + ", " + gpu + ") " + text + "; " +
              position_of(seen.row) + "; " + others};
}

/// What a rank's line says of it, whatever the others do.
std::optional<Found> of_one(const RankTable& table, std::size_t r, const WatchLimits& limits) {
  const SeenRank& rank = table[r];
  const RowView& row = rank.row;
  if (!rank.visible || row.standing == Standing::left) return {};
  if (row.standing == Standing::failed || row.standing == Standing::exits)
    return of_rank(table, r, Finding::failed, std::string("failed: ") + row.reason);
  if (rank.gone) return of_rank(table, r, Finding::died, "died: its process is gone");
  if (rank.unreachable)
    return of_rank(table, r, Finding::unreachable,
                   "does not serve its store any more: it has died, or its host or network");
  if (rank.silent > limits.silence)
    return of_rank(
        table, r, Finding::silent,
        "gives no sign of life for " + in_seconds(rank.silent) + ": it is stopped, or its host hangs");
  const std::string waited = "has waited for " + to_string(row.outside) + " for " + in_seconds(rank.still);
  if (!held_up(row) && rank.still > stall_of(row, limits))
    return of_rank(
        table, r, Finding::stalled,
        "is alive, but " + (waits_outside(row) ? waited : "has not gone on for " + in_seconds(rank.still)));
  if (waits_outside(row) && rank.quiet <= 0 && rank.still > longest_in_a_step(row, limits))
    return of_rank(table, r, Finding::slow, waited,
                   "the other ranks wait for it, and end after " + in_seconds(limits.outside) +
                       " without progress (parallel.stall_seconds)");
  return {};
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

/// Which ranks wait at which step, phase and collective.
std::string of_standstill(double seconds, const RankTable& ranks) {
  constexpr std::size_t most_positions = 6, most_letters = 120;  // one line, of however many ranks
  std::map<std::pair<std::int64_t, std::string>, std::vector<std::size_t>> positions;
  for (std::size_t r = 0; r < ranks.size(); ++r)
    positions[{ranks[r].row.collectives, position_of(ranks[r].row)}].push_back(r);
  std::string where;
  std::size_t more = positions.size();
  for (const auto& [position, those] : positions) {
    if (more + most_positions == positions.size()) break;
    --more;
    std::string who = positions.size() == 1 ? "all at" : ranges(those) + " at";
    if (who.size() > most_letters) who = std::to_string(those.size()) + " ranks at";
    where += (where.empty() ? "" : "; ") + who + " " + position.second;
  }
  if (more > 0) where += "; " + std::to_string(more) + " more groups of ranks";
  return "all " + std::to_string(ranks.size()) + " ranks wait for each other for " + in_seconds(seconds) +
         ", and none is behind alone: " + where +
         "; the cause is not known: a GPU, a link between them, or their collective library; all ranks stop "
         "with exit code 77";
}

std::optional<Found> all_wait(const RankTable& table, const WatchLimits& limits) {
  bool for_ranks = true;  // and none for its GPU alone
  double shortest = 1e300;
  for (const SeenRank& rank : table) {
    if (!rank.visible || rank.row.standing != Standing::running || !held_up(rank.row) ||
        rank.still <= stall_of(rank.row, limits))
      return {};
    for_ranks = for_ranks && rank.row.waits;
    shortest = std::min(shortest, rank.still);
  }
  if (const auto r = behind_alone(table, &RowView::reached); r && gpu_is_behind(table[*r].row))
    return of_rank(table, *r, Finding::gpu_behind,
                   "is alive, but its GPU has not gone on for " + in_seconds(shortest) + ": it has come to " +
                       std::to_string(table[*r].row.reached) + " of the " +
                       std::to_string(table[*r].row.given) +
                       " collectives that it was given in this step, every other GPU to more: it hangs, or "
                       "what it waits for");
  // Calls that wait for room in a queue say nothing of who began how much.
  if (const auto r = behind_alone(table, &RowView::of_step); r && for_ranks)
    return of_rank(
        table, *r, Finding::deadlock,
        "has begun the fewest collectives, and all ranks wait for each other for " + in_seconds(shortest));
  return Found{no_rank, Finding::standstill, of_standstill(shortest, table)};
}
}  // namespace

WatchLimits limits_of(double stall, double outside) {
  return {.silence = stall / 2, .stall = stall, .outside = std::max(stall, outside)};
}

void update(SeenRank& rank, const RowView& row, double seconds) {
  constexpr double longest = 0.5;
  const double passed = std::min(seconds, longest);
  rank.silent = row.beat == rank.row.beat ? rank.silent + passed : 0;
  rank.still = row.progress == rank.row.progress ? rank.still + passed : 0;
  rank.quiet = std::max(0.0, rank.quiet - passed);
  rank.row = row;
}

Judgement judge(const RankTable& table, const WatchLimits& limits) {
  Judgement judgement;
  for (std::size_t r = 0; r < table.size(); ++r) {
    const auto found = of_one(table, r, limits);
    if (found && found->what == Finding::slow)
      judgement.slow.push_back(*found);
    else if (found && (!judgement.lost || found->what < judgement.lost->what))
      judgement.lost = found;
  }
  if (!judgement.lost) judgement.lost = all_wait(table, limits);
  return judgement;
}

}  // namespace assay::impl
