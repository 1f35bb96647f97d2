#pragma once
// Which state weights and moments are, readable by a thread that may not wait for the trainer's.
#include <ATen/core/Tensor.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>

#include "impl/comm/stream_word.hpp"

namespace assay::impl::run {

struct WholeState {
  std::int64_t step = 0;     ///< completed steps
  std::int64_t skipped = 0;  ///< of these, that were not finite
};

/// Counts the changes of a state: the count is odd while one is under way. A reader who finds the same even
/// count before and behind his reading has read one state. On a GPU the stream counts, as it comes to the
/// update: what it was given and hangs ahead of has changed nothing.
class StateMark {
 public:
  explicit StateMark(at::Device device);

  /// On the thread that trains. Nothing: the state changes from here on, until it is said what it is.
  void is(const std::optional<WholeState>& state);

  /// From any thread.
  std::uint32_t count() const { return stream_ ? stream_->read() : count_.load(); }
  /// The state of that count; nothing for an odd one, or one that is long past.
  std::optional<WholeState> at(std::uint32_t count) const;

 private:
  void write(std::uint32_t count);

  std::unique_ptr<StreamWord> stream_;  ///< null on the CPU
  std::atomic<std::uint32_t> count_{1};
  std::uint32_t written_ = 1;
  mutable std::mutex mutex_;
  struct Known {
    std::uint32_t count = 1;
    WholeState state;
  };
  std::array<Known, 2> known_;  ///< a stream may be one update behind
};

}  // namespace assay::impl::run
