#pragma once
// A save that goes on in a thread of each rank beside the steps of training.
#include <atomic>
#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "impl/checkpoint/save.hpp"
#include "spec/record/event.hpp"

namespace assay::impl::run {

/// Writes on every rank, then commits on rank 0. The threads communicate with no other rank: `go_on`, which
/// the thread that trains calls, exchanges how far they are.
class SaveUnderWay {
 public:
  /// Copies the state to `memory` and begins to write. Collective.
  SaveUnderWay(std::unique_ptr<checkpoint::Save> save, const ParameterBuffers& buffers,
               checkpoint::HostMemory& memory, Communicator& all);
  ~SaveUnderWay();
  SaveUnderWay(const SaveUnderWay&) = delete;
  SaveUnderWay& operator=(const SaveUnderWay&) = delete;

  std::int64_t step() const { return save_->step(); }

  /// Whether it has ended on all ranks. Collective. Errors: AgreedError of what failed on a rank; then it has
  /// ended on all.
  bool go_on();
  /// Waits a moment for this rank's thread, as for a disk; `piece` is called where it has done something.
  void await(const std::function<void()>& piece);

  /// On rank 0, once it has ended.
  const checkpoint::Saved& saved() const { return saved_; }
  /// Times and sizes for the record, once it has ended. `delay`: see delayed.
  spec::record::Checkpoint event() const;
  /// Steps waited so long for it.
  void delayed(double seconds) { delay_seconds_ += seconds; }

 private:
  void begin(std::function<void()> work);

  const std::unique_ptr<checkpoint::Save> save_;
  Communicator& all_;
  checkpoint::Snapshot snapshot_;
  double copy_seconds_ = 0, write_seconds_ = 0, delay_seconds_ = 0;
  std::int64_t host_bytes_ = 0;
  bool commits_ = false;
  checkpoint::Saved saved_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ended_ = false;        ///< this rank's thread
  std::uint64_t pieces_ = 0;  ///< that it has begun
  std::uint64_t pieces_seen_ = 0;
  std::exception_ptr error_;
  std::thread thread_;
};

}  // namespace assay::impl::run
