#pragma once
// Ranks that watch each other. A thread of each rank publishes that the rank is alive and what it does, reads
// the rows of the others, and ends its own rank once one is lost. It does not use the collective library,
// which may hang.
#include <condition_variable>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "impl/comm/communicator.hpp"
#include "impl/health/host_board.hpp"
#include "impl/health/peer_link.hpp"
#include "impl/health/peer_rules.hpp"

namespace assay::impl {

/// What the watch calls on its own thread.
struct WatchCalls {
  /// On one rank that still runs: prints which rank is lost; then records it, where rank 0 is the
  /// lost one after its process has ended.
  std::function<void(const std::string&text)> report, record;
  /// A rank is slow; called on a thread of its own, which may wait for a terminal. On rank 0, which writes
  /// the record, and on the rank that prints it, `aloud`.
  std::function<void(const std::string& text, bool aloud)> warn;
  /// On every rank, afterwards: ends this rank with ExitCode::peer_lost. If it returns, the watch has ended.
  std::function<void()> end;
};

class RankWatch {
 public:
  /// Collective. `host`: this rank's host name; `memory`: as in HostBoard. Errors: as HostBoard and PeerLink.
  RankWatch(Communicator& communicator, const WatchLimits& limits, const std::string& host, WatchCalls calls,
            const std::string& memory = HostBoard::shared_memory_of_this_process());
  /// If this rank has not left before, the others count it as lost.
  ~RankWatch();
  RankWatch(const RankWatch&) = delete;
  RankWatch& operator=(const RankWatch&) = delete;

  /// The row of this rank.
  Row& row() { return board_.mine(); }
  /// From here on the row also holds the progress of this rank's GPU, as GpuProgress::reached.
  void follow(std::function<std::int64_t()> reached);

  /// This rank ends because of an error of its own, which it has reported itself: the others are to name it.
  void fail(const std::string& why);
  /// This rank has finished, and the others do not need it any more.
  void leave();
  /// The calling thread has an error whose cause may be a lost rank: it waits until the watch ends this rank,
  /// or for that long.
  void await_verdict(double seconds);

 private:
  void work();
  void look_at_gpu();
  bool find(double seconds, Verdict& verdict);
  std::vector<SeenRank> look_around();
  void warn_of_slow(const std::vector<SeenRank>& all);
  void conclude(const Verdict& verdict);
  void have_it_reported(const Verdict& verdict);
  void end_lost_process(const Verdict& verdict);
  bool reports_first(const Verdict& verdict) const;
  /// Lets the thread say the row's last word, if it still runs.
  void say(Standing standing);

  HostBoard board_;
  std::vector<std::string> hosts_;  ///< of all ranks
  const int rank_;
  const WatchLimits limits_;
  PeerRules rules_;
  WatchCalls calls_;
  std::unique_ptr<PeerLink> link_;  ///< where there are several hosts
  bool far_ = false;                ///< from rank 0
  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false, concluded_ = false;
  int turns_ = 0;
  std::function<std::int64_t()> reached_;
  std::vector<std::pair<std::string, bool>> warnings_;  ///< that wait for those before them
  std::future<void> warning_;
  std::thread thread_;  ///< uses all of the above
};

}  // namespace assay::impl
