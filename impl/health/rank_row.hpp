#pragma once
// What a rank is at: written by its threads, published by its watch to the other ranks.
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "impl/machine/disk_call.hpp"
#include "spec/parallel/collective.hpp"

namespace assay::impl {

/// The current work of a rank: the record's phases in their order, and the work outside of a step.
enum class Doing {
  data_wait,
  forward,
  backward,
  reduce,
  clip,
  update,
  other,
  checkpoint,
  starting,
  ending,
  validation
};

/// All but `running`: declared by the rank itself. One that has failed stays until the others know, and its
/// weights and moments with it; one that exits does not.
enum class Standing { running, failed, left, exits };

std::string to_string(Doing doing);
std::string to_string(Outside outside);  ///< "data", "a disk", "its terminal"

/// A row at one moment: bytes without pointers, which other processes of this program read.
struct RowView {
  std::uint64_t beat = 0;      ///< grows with every exchange of rows
  std::uint64_t progress = 0;  ///< grows with every phase, collective, piece of a save and call outside
  std::int64_t step = 0;       ///< the one that is trained, 1 is the first; 0: none yet
  std::int64_t steps_done = 0;
  double longest_step = 0;       ///< of this start of the program, but for the first [s]
  std::int64_t collectives = 0;  ///< begun so far
  /// Collectives of this step: those begun; those between GPUs that are enqueued; and those of them that the
  /// GPU has reached, after all work ahead of them: below 0 while it is in an earlier step. In a step every
  /// rank begins the same collectives, in a save not.
  std::int64_t of_step = 0, given = 0, reached = 0;
  std::int64_t bytes = 0;                        ///< of the last one
  std::optional<spec::Collective> collective{};  ///< the last one
  Doing doing = Doing::starting;
  Standing standing = Standing::running;
  Outside outside = Outside::nothing;  ///< what it waits for, as seen at the last beat
  bool waits = false;                  ///< for other ranks, in a collective
  char gpu[64] = {};                   ///< identity of its GPU; empty: CPU
  char reason[256] = {};               ///< of `failed`
};

/// The row of this rank. From any thread.
class Row {
 public:
  void enter(Doing doing);
  /// `entered`: called by every `enter`, on its thread. Errors that it throws are those of `enter`.
  void on_enter(std::function<void(const RowView&)> entered) { entered_ = std::move(entered); }
  void begin_step(std::int64_t step);
  void end_step(double seconds);
  void begin(spec::Collective collective, std::int64_t bytes);
  /// A collective between GPUs is enqueued. Returns its number since the start, which the GPU writes down
  /// once it reaches it.
  std::uint32_t give();
  /// From here on `reached` says the number that the GPU has written last.
  void follow(std::function<std::uint32_t()> reached);
  void wait(bool waits) { advance()->waits = waits; }
  /// A piece of long work has ended.
  void tick() { advance(); }
  void stand(Standing standing, const std::string& reason = "");
  void set_gpu(const std::string& gpu);  ///< cut to what fits

  RowView view() { return *hold(); }
  /// The row for the others, with what its GPU has reached and what its process waits for outside of the job.
  /// Progress is also that these go on.
  RowView beat();

 private:
  struct Held {
    std::unique_lock<std::mutex> lock;
    RowView& row;
    RowView* operator->() const { return &row; }
    RowView& operator*() const { return row; }
  };
  Held hold() { return {std::unique_lock(mutex_), now_}; }
  Held advance();

  std::mutex mutex_;
  RowView now_;
  std::uint32_t given_before_ = 0;   ///< this step
  std::uint64_t outside_ended_ = 0;  ///< at the last beat
  std::function<std::uint32_t()> reached_;
  std::function<void(const RowView&)> entered_;
};

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
