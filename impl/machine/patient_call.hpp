#pragma once
// System calls on files that are made again where they failed for a moment only.
#include <cerrno>
#include <chrono>
#include <concepts>
#include <thread>

#include "spec/text/file.hpp"

namespace assay::impl {

/// Whether a disk or network that fails so may answer the next time.
inline bool may_pass(int reason) {
  return reason == EIO || reason == ETIMEDOUT || reason == ESTALE || reason == EAGAIN;
}

/// Makes `call`, which returns -1 and sets errno where it fails, or throws spec::FileFault. One that was
/// interrupted is made again. One that may pass is made up to `times` times, with pauses of 0.1, 0.4 and 1.6
/// s between four.
template <class Call>
auto patiently(const Call& call, int times = 4) {
  std::chrono::milliseconds pause{100};
  for (int again = 1;; ++again) {
    try {
      auto result = call();
      if constexpr (std::integral<decltype(result)>) {
        while (result < 0 && errno == EINTR) result = call();
        if (result >= 0 || !may_pass(errno) || again == times) return result;
      } else {
        return result;
      }
    } catch (const spec::FileFault& fault) {
      if (!may_pass(fault.reason()) || again == times) throw;
    }
    std::this_thread::sleep_for(pause);
    pause *= 4;
  }
}

}  // namespace assay::impl
