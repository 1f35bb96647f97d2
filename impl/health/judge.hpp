#pragma once
// When a rank counts as lost or slow: rules over the table of all ranks, without clocks, threads or
// processes.
#include <optional>
#include <string>
#include <vector>

#include "impl/health/rank_row.hpp"

namespace assay::impl {

/// Patience with a rank. [s]
struct WatchLimits {
  double silence = 10;  ///< no beat: its process is stopped, or its host hangs
  double stall = 20;    ///< beats, and neither goes on nor waits for anything
  double steps = 5;     ///< a stall is also longer than so many of its longest steps
  /// The stall outside of steps of known duration: start, first step, end, and a wait for data, a disk or a
  /// terminal.
  double outside = 600;
};

/// `stall`: within steps. `outside`: parallel.stall_seconds.
WatchLimits limits_of(double stall, double outside);

/// A line of the table: what this rank knows of one rank.
struct SeenRank {
  RowView row;
  std::string host;
  bool visible = false;          ///< nothing else counts where it is not
  bool gone = false;             ///< its process has ended
  bool unreachable = false;      ///< rank 0: its store has closed the connection
  double silent = 0, still = 0;  ///< how long it has not beaten; how long it has not gone on [s]
  double quiet = 0;              ///< until it may be given as slow again [s]
};
using RankTable = std::vector<SeenRank>;

/// The row as it was read `seconds` after the last. Time in which the reading process was itself stopped does
/// not count: at most half a second does.
void update(SeenRank& rank, const RowView& row, double seconds);

/// The worst first: a rank that says why it ends comes before those that end because of it. `gpu_behind`: all
/// ranks wait for GPUs, and one GPU has not reached the collective that every other GPU has reached.
/// `deadlock`: all ranks wait, one of them behind all others. `standstill`: all wait, and none is behind
/// alone. `slow`: it waits for something outside of the job for longer than a stall; not lost.
enum class Finding { failed, died, unreachable, silent, stalled, gpu_behind, deadlock, standstill, slow };

/// Instead of a rank: no rank is known to be at fault.
inline constexpr int no_rank = -1;

struct Found {
  int rank = 0;  ///< of `standstill`: no_rank
  Finding what = Finding::died;
  std::string text;  ///< one line: rank, host, GPU, what happened, step, phase, last collective, the others
};

struct Judgement {
  std::optional<Found> lost;  ///< the worst, of the lowest rank
  std::vector<Found> slow;    ///< each rank once in `outside` seconds
};

/// A rank is not stalled while it waits for others, or while its GPU has not reached a collective in its
/// queue: its calls may wait for room in that queue. If all ranks are visible and all wait in this way, the
/// rank is lost whose GPU has reached fewer collectives of the step than every other GPU; else, if all wait
/// for ranks, the rank that has begun fewer collectives than every other. If several are equally far behind,
/// a link or the collective library may hang, and no rank is lost.
Judgement judge(const RankTable& table, const WatchLimits& limits);

}  // namespace assay::impl
