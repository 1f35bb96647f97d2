#pragma once
// Calls that a slow disk may hold up for as long as it likes: a rank in one of them is not taken for one that
// hangs.
#include <atomic>

namespace assay::impl {

/// While one lives, this process is in such a call.
class DiskCall {
 public:
  DiskCall() { ++count_; }
  ~DiskCall() { --count_; }
  DiskCall(const DiskCall&) = delete;
  DiskCall& operator=(const DiskCall&) = delete;

  static bool under_way() { return count_ > 0; }

 private:
  static inline std::atomic<int> count_{0};
};

}  // namespace assay::impl
