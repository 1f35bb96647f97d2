#pragma once
// Calls that something outside of the job may hold up for as long as it likes: a rank in one of them is slow,
// and does not hang.
#include <atomic>
#include <cstdint>

namespace assay::impl {

/// What a rank may wait for that no rank of the job can hurry.
enum class Outside : int { nothing, data, disk, terminal };

/// While one lives, calls of this thread hold nothing up: it works beside the one that trains. Whether that
/// one goes on is seen by its own calls.
class BesideTraining {
 public:
  BesideTraining() { here_ = true; }
  ~BesideTraining() { here_ = false; }
  BesideTraining(const BesideTraining&) = delete;
  BesideTraining& operator=(const BesideTraining&) = delete;

  static bool here() { return here_; }

 private:
  static inline thread_local bool here_ = false;
};

/// While one lives, this process is in such a call.
template <Outside what>
class OutsideCall {
 public:
  OutsideCall() {
    if (!BesideTraining::here()) ++count_;
  }
  ~OutsideCall() {
    if (!BesideTraining::here()) --count_, ++ended_;
  }
  OutsideCall(const OutsideCall&) = delete;
  OutsideCall& operator=(const OutsideCall&) = delete;

  static bool under_way() { return count_ > 0; }
  static std::uint64_t ended() { return ended_; }  ///< calls so far

 private:
  static inline std::atomic<int> count_{0};
  static inline std::atomic<std::uint64_t> ended_{0};
};

using DataCall = OutsideCall<Outside::data>;  ///< of files of tokens
using DiskCall = OutsideCall<Outside::disk>;  ///< of checkpoints and the record
using TerminalCall = OutsideCall<Outside::terminal>;

/// What this process waits for. Data last: the loader's thread reads ahead of the trainer's.
inline Outside outside_under_way() {
  if (TerminalCall::under_way()) return Outside::terminal;
  if (DiskCall::under_way()) return Outside::disk;
  return DataCall::under_way() ? Outside::data : Outside::nothing;
}
/// Of all kinds, so far: each is a piece of work that is done.
inline std::uint64_t outside_ended() { return TerminalCall::ended() + DiskCall::ended() + DataCall::ended(); }

}  // namespace assay::impl
