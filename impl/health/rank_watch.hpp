#pragma once
// Ranks that watch each other: a thread of each says that it is alive and what it is at, looks at the others,
// and ends its own rank once one is lost. It speaks to nobody through the collective library, which may hang.
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
  /// On every rank, afterwards: ends this rank with ExitCode::peer_lost. Nothing is watched any more where it
  /// returns.
  std::function<void()> end;
};

class RankWatch {
 public:
  /// Collective. `host`: this rank's, as people know it; `memory`: as HostBoard. Errors: as HostBoard and
  /// PeerLink.
  RankWatch(Communicator& communicator, const WatchLimits& limits, const std::string& host, WatchCalls calls,
            const std::string& memory = HostBoard::shared_memory_of_this_process());
  /// A rank that has not left before is lost to the others.
  ~RankWatch();
  RankWatch(const RankWatch&) = delete;
  RankWatch& operator=(const RankWatch&) = delete;

  /// What this rank says of itself.
  Row& row() { return board_.mine(); }
  /// From here on the row also says how far this rank's GPU has come: as GpuProgress::reached.
  void follow(std::function<std::int64_t()> reached);

  /// This rank ends because of an error of its own, which it has reported itself: the others are to name it.
  void fail(const std::string& why);
  /// This rank is done, and the others need it no more.
  void leave();
  /// The calling thread has met an error that a lost rank may be the reason of: it waits until the watch
  /// ends this rank, or that long.
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
