#pragma once
// System calls on files that are made again where they failed for a moment only.
#include <cerrno>
#include <chrono>
#include <thread>

namespace assay::impl {

/// Whether a disk or network that fails so may answer the next time.
inline bool may_pass(int reason) {
  return reason == EIO || reason == ETIMEDOUT || reason == ESTALE || reason == EAGAIN;
}

/// Makes `call`, which returns -1 and sets errno where it fails. One that was interrupted is made again. One
/// that may pass is made up to `times` times, with pauses of 0.1, 0.4 and 1.6 s between four.
template <class Call>
auto patiently(const Call& call, int times = 4) {
  std::chrono::milliseconds pause{100};
  for (int again = 1;;) {
    const auto result = call();
    if (result >= 0 || (errno != EINTR && (!may_pass(errno) || again == times))) return result;
    if (errno == EINTR) continue;
    std::this_thread::sleep_for(pause);
    pause *= 4, ++again;
  }
}

}  // namespace assay::impl
