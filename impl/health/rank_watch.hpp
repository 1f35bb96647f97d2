#pragma once
// Ranks that watch each other through the job's store, without the collective library, which may hang.
#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "impl/comm/communicator.hpp"
#include "impl/comm/job_store.hpp"
#include "impl/health/judge.hpp"
#include "impl/machine/host_name.hpp"
#include "impl/machine/process.hpp"

namespace assay::impl {

/// What the watch does to its process.
struct WatchCalls {
  std::function<void(const std::string& text)> print;  ///< on stderr
  /// A rank is lost. If it returns, as where threads stand for processes, the watch is over.
  std::function<void()> end;
};
/// `end`: with ExitCode::peer_lost, wherever the other threads are.
WatchCalls calls_of_this_process();

/// What a run does with what the watch finds; each may be empty.
struct WatchRecord {
  /// On every rank that is there, ahead of all that is said of the loss and of the processes' end: saves what
  /// can be saved. `stays`: rank `lost` has failed and does so, too.
  std::function<void(int lost, bool stays)> save = {};
  /// Behind the line of a loss: what to do next.
  std::function<std::string()> advice = {};
  /// Records a loss, where this rank is the one that reports it.
  std::function<void(const std::string& text)> loss = {};
  /// For the rank that writes the record: records that a rank is slow and, `aloud`, prints it, on a thread
  /// that may wait. Errors that it throws are passed over.
  std::function<void(const std::string& text, bool aloud)> slow = {};
};

/// A thread publishes this rank's row, and judges those of the other ranks: rank 0 of all, each other of rank
/// 0 and of its own machine. A call to the store hangs for as long as the store's process is stopped, so it
/// is made on another thread. Once a rank is lost, one rank prints and records it, and every rank ends.
class RankWatch {
 public:
  /// Collective. `host`: this rank's, for messages; `process`: this one. Errors: connect_to_job_store's.
  RankWatch(Communicator& communicator, const WatchLimits& limits, WatchCalls calls = calls_of_this_process(),
            const std::string& host = host_name(), const Process& process = this_process());
  ~RankWatch();
  RankWatch(const RankWatch&) = delete;
  RankWatch& operator=(const RankWatch&) = delete;

  /// The row of this rank.
  Row& row() { return row_; }
  /// What it finds is recorded in that way; {}: not any more.
  void record_by(WatchRecord record);

  /// This rank ends because of an error of its own, which it has reported itself: the others are to name it.
  void fail(const std::string& why);
  /// All ranks have finished, and none needs another any more: ends the watch.
  void leave();
  /// Whether it has found a loss, saves what is left, reports it, and then ends this process.
  bool concludes() const { return concludes_; }

 private:
  /// Which rank is lost, decided once for all ranks; no_rank: all ranks stand still for an unknown reason.
  struct Verdict {
    int rank = 0;
    bool stays = false;     ///< it has failed, and its process is still there
    bool reported = false;  ///< by one of them
    std::string text;
  };
  /// What an exchange has brought.
  struct News {
    std::optional<Verdict> verdict;  ///< the first of all ranks
    std::vector<RowView> rows;       ///< of read_
    std::vector<bool> gone;          ///< the same; as it was ahead of their reading
  };

  void work(const std::stop_token& stop);
  bool turn(double seconds);
  News exchange(const RowView& mine, const std::optional<Verdict>& proposed);
  bool find();
  void warn_of(const std::vector<Found>& slow);
  void conclude();
  bool others_left(int lost, int below) const;
  void save_what_is_there();
  void report();
  void end_process_of(int rank);
  void leave_together();
  bool here(int rank) const;  ///< on this machine
  bool gone(int rank) const;  ///< from this machine
  void stop();
  static void quit();

  const int rank_;
  const WatchLimits limits_;
  const WatchCalls calls_;
  std::vector<Process> processes_;  ///< of the ranks
  std::vector<int> read_;           ///< ranks whose rows this one reads, its own among them
  std::unique_ptr<JobStore> store_;
  Row row_;

  // Of the watch's thread.
  std::future<News> exchange_;
  News news_;
  RankTable table_;
  std::chrono::steady_clock::time_point read_at_;
  std::optional<Verdict> verdict_;  ///< of this rank, until the store has that of all
  bool closed_ = false;             ///< the store does not answer any more
  std::future<void> warning_;       ///< the last one, which waits for those before it

  std::atomic<bool> concludes_ = false;  ///< a rank is lost
  std::atomic<bool> concluded_ = false;  ///< and that is reported

  std::mutex reporting_, warning_of_;  ///< held while a loss or a warning is recorded
  WatchRecord record_;                 ///< changed under both

  std::jthread thread_;
};

}  // namespace assay::impl
