#pragma once
// When a rank counts as lost: a rule over the visible state of all ranks, without clocks or processes of its
// own.
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

/// What is known of one rank.
struct SeenRank {
  RowView row;
  bool visible = false;  ///< nothing else counts where it is not
  bool gone = false;     ///< its process, or the connection to it, has ended
};

/// `gpu_behind`: all ranks wait for GPUs, and one GPU has not reached the collective that every other GPU has
/// reached. `deadlock`: all ranks wait, one of them behind all others. `standstill`: all wait, and none is
/// behind alone.
enum class Lost { died, quit, failed, silent, stalled, gpu_behind, deadlock, standstill };

/// Instead of a rank: no rank is known to be at fault.
inline constexpr int no_rank = -1;

struct Finding {
  int rank = 0;  ///< of `standstill`: no_rank
  Lost how = Lost::died;
  double seconds = 0;  ///< of `silent`, `stalled`, `gpu_behind`, `deadlock` and `standstill`
};

/// A rank that waits for something outside of the job for longer than a stall.
struct Slow {
  int rank = 0;
  double seconds = 0;
};

/// Checks the ranks in turns. Time in which this process itself was stopped does not count against a rank.
class PeerRules {
 public:
  PeerRules(const WatchLimits& limits, int ranks, int self);

  /// The worst finding, of the lowest rank; `seconds`: since the last look. A rank is not stalled while it
  /// waits for others, or while its GPU has not reached a collective in its queue: its calls may wait for
  /// room in that queue. If all ranks are visible and all wait in this way, the rank is named whose GPU has
  /// reached fewer collectives of the step than every other GPU; else, if all wait for ranks, the rank that
  /// has begun fewer collectives than every other. If several are equally far behind, a link or the
  /// collective library may hang, and no rank is named.
  std::optional<Finding> look(double seconds, const std::vector<SeenRank>& ranks);
  /// The slow ranks of that turn, each once in `outside` seconds.
  std::vector<Slow> slow(const std::vector<SeenRank>& ranks);

 private:
  struct Memory {
    std::uint64_t beat = 0, progress = 0;
    double silent = 0, still = 0;  ///< [s]
    double quiet = 0;              ///< until it may be given as slow again [s]
  };
  std::optional<Finding> ended(const std::vector<SeenRank>& ranks) const;
  std::optional<Finding> stands_still(const std::vector<SeenRank>& ranks) const;
  std::optional<Finding> all_wait(const std::vector<SeenRank>& ranks) const;
  double longest_in_a_step(const RowView& row) const;
  double stall_of(const RowView& row) const;

  WatchLimits limits_;
  int self_;
  std::vector<Memory> memory_;
};

/// One line: rank, host, GPU, what happened, step, phase, last collective, what the others do.
std::string describe(const Finding& finding, const RowView& row, const std::string& host);
/// The same of a slow rank: what it waits for, and until when it may.
std::string describe_slow(const Slow& slow, const RowView& row, const std::string& host,
                          const WatchLimits& limits);
/// The same of a standstill: which ranks wait at which step, phase and collective.
std::string describe_standstill(const Finding& finding, const std::vector<SeenRank>& ranks);

}  // namespace assay::impl
