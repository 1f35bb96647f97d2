#pragma once
// The end of a record whose run cannot end it: a rank died, and the launcher kills the others.
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "impl/run/stop_signal.hpp"

namespace assay::impl::run {

/// While it lives, a thread looks for the SIGTERM that launchers send ahead of SIGKILL. Rank 0 mostly stands
/// in a collective then, waiting for the rank that is gone, and never sees a step border again; one `delay`
/// later `speak` is called, once, on that thread. A run that does go on writes its real end behind these
/// words.
class LastWords {
 public:
  LastWords(const StopSignal& stop, std::function<void()> speak,
            std::chrono::milliseconds delay = std::chrono::milliseconds(300));
  ~LastWords();
  LastWords(const LastWords&) = delete;
  LastWords& operator=(const LastWords&) = delete;

  /// The run has seen the signal and ends by itself: nothing is spoken any more.
  void not_needed();

 private:
  void watch(const StopSignal& stop, std::chrono::milliseconds delay);

  std::function<void()> speak_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
  std::jthread thread_;
};

}  // namespace assay::impl::run
