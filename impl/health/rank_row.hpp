#pragma once
// The state that a rank publishes to the watches of the other ranks, without a collective library.
#include <atomic>
#include <cstdint>
#include <string>

#include "impl/machine/disk_call.hpp"

namespace assay::impl {

/// The current work of a rank: the record's phases, and the work outside of a step.
enum class Doing : int {
  starting,
  data_wait,
  forward,
  backward,
  reduce,
  clip,
  update,
  checkpoint,
  other,
  ending
};

/// `left` and `failed`: declared by the rank itself. `quit`: its process runs its exit handlers although it
/// should not end.
enum class Standing : int { absent, running, failed, quit, left };

enum class Collective : int {
  none,
  all_reduce,
  reduce_scatter,
  all_gather,
  words,
  barrier,
  exchange,
  all_to_all
};

std::string to_string(Doing doing);
std::string to_string(Collective collective);
std::string to_string(Outside outside);  ///< "data", "a disk", "its terminal"

/// A row at one moment, as it also goes from host to host.
struct RowView {
  std::uint64_t beat = 0;      ///< grows as long as the process runs
  std::uint64_t progress = 0;  ///< grows with every phase, collective, piece of a save and call outside
  std::int64_t step = 0;       ///< the one that is trained, 1 is the first; 0: none yet
  std::int64_t steps_done = 0;
  double longest_step = 0;       ///< of this start of the program, but for the first [s]
  std::int64_t collectives = 0;  ///< begun so far
  /// Collectives of this step: those begun; those between GPUs that are enqueued; and those of them that the
  /// GPU has reached, after all work ahead of them. In a step every rank begins the same collectives, in a
  /// save not.
  std::int64_t of_step = 0, given = 0, reached = 0;
  std::int64_t bytes = 0;  ///< of the last one's whole tensor
  Collective collective = Collective::none;
  Doing doing = Doing::starting;
  Standing standing = Standing::absent;
  Outside outside = Outside::nothing;  ///< what it waits for, as seen at the last beat
  bool waits = false;                  ///< for other ranks, in a collective
  std::int32_t process = 0;            ///< its id, as it knows it
  char gpu[64] = {};                   ///< identity of its GPU; empty: CPU
  char reason[256] = {};               ///< of `failed`
};

/// Written by its rank alone, read by all ranks of the host: in memory that they share.
class Row {
 public:
  void enter(Doing doing) { doing_ = doing, ++progress_; }
  void begin_step(std::int64_t step) {
    before_step_ = collectives_.load(), given_before_step_ = given_.load();
    step_ = step, ++progress_;
  }
  void end_step(double seconds);
  void begin(Collective collective, std::int64_t bytes);
  /// A collective between GPUs is enqueued.
  void give() { ++given_; }
  /// How many of them the GPU has reached since the start. Called by the watch's thread only.
  void set_reached(std::int64_t reached) {
    if (reached_ != reached) ++progress_;
    reached_ = reached;
  }
  void wait(bool waits) { waits_ = waits, ++progress_; }
  /// What the process waits for outside of the job, and how many such calls have ended. A change is progress
  /// and is written first: a reader that sees the end of a call also sees the progress. Called by the watch's
  /// thread only.
  void set_outside(Outside now, std::uint64_t ended) {
    if (outside_ == now && outside_ended_ == ended) return;
    ++progress_;
    outside_ended_ = ended;
    outside_ = now;
  }
  /// A piece of long work has ended.
  void tick() { ++progress_; }
  void beat() { ++beat_; }
  void stand(Standing standing) { standing_ = standing; }
  void set_process(std::int32_t id) { process_ = id; }
  /// Cut to what fits. Once each, before the standing that they belong to.
  void set_gpu(const std::string& gpu);
  void set_reason(const std::string& reason);

  RowView view() const;

 private:
  std::atomic<std::uint64_t> beat_{0}, progress_{0}, outside_ended_{0};
  std::atomic<std::int64_t> step_{0}, steps_done_{0}, collectives_{0}, bytes_{0}, before_step_{0};
  std::atomic<std::int64_t> given_{0}, reached_{0}, given_before_step_{0};
  std::atomic<double> longest_step_{0};
  std::atomic<Collective> collective_{Collective::none};
  std::atomic<Doing> doing_{Doing::starting};
  std::atomic<Standing> standing_{Standing::absent};
  std::atomic<Outside> outside_{Outside::nothing};
  std::atomic<bool> waits_{false};
  std::atomic<std::int32_t> process_{0};
  std::atomic<char> gpu_[64] = {};
  std::atomic<char> reason_[256] = {};
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free && std::atomic<double>::is_always_lock_free,
              "a lock of one process means nothing to another");

/// While this lives, the rank waits for other ranks.
class WaitingRow {
 public:
  explicit WaitingRow(Row& row) : row_(row) { row_.wait(true); }
  ~WaitingRow() { row_.wait(false); }
  WaitingRow(const WaitingRow&) = delete;
  WaitingRow& operator=(const WaitingRow&) = delete;

 private:
  Row& row_;
};

}  // namespace assay::impl
