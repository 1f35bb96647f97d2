#include "impl/run/last_words.hpp"

#include <pthread.h>

#include <csignal>
#include <utility>

namespace assay::impl::run {

LastWords::LastWords(const StopSignal& stop, std::function<void()> speak, std::chrono::milliseconds delay)
    : speak_(std::move(speak)), thread_([this, &stop, delay] { watch(stop, delay); }) {}

LastWords::~LastWords() { not_needed(); }

void LastWords::not_needed() {
  const std::scoped_lock lock(mutex_);
  over_ = true;
  changed_.notify_all();
}

void LastWords::watch(const StopSignal& stop, std::chrono::milliseconds delay) {
  sigset_t all;  // signals go to the trainer's thread, which knows what to do with them
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
  std::unique_lock lock(mutex_);
  const auto over = [this] { return over_; };
  // A handler may not notify: looked at ten times a second.
  while (stop.received() != SIGTERM)
    if (changed_.wait_for(lock, std::chrono::milliseconds(100), over)) return;
  if (!changed_.wait_for(lock, delay, over)) speak_();
}

}  // namespace assay::impl::run
