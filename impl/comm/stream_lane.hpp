#pragma once
// A stream of collectives beside the current one. Only for files that know CUDA.
#include <ATen/core/Tensor.h>
#include <ATen/cuda/CUDAEvent.h>
#include <c10/cuda/CUDAStream.h>

#include <algorithm>
#include <deque>
#include <utility>
#include <vector>

#include "impl/comm/communicator.hpp"

namespace assay::impl {

/// Orders what is begun in `stream` with the current stream, by events: the CPU never waits. What is begun
/// here is done in that order.
class StreamLane {
 public:
  using Ticket = Communicator::Ticket;

  StreamLane(c10::cuda::CUDAStream stream, at::Device device) : stream_(stream), device_(device) {}

  c10::cuda::CUDAStream stream() const { return stream_; }

  /// The lane goes on after what the current stream was given so far. It holds `tensors` until their ticket
  /// is waited for: from then on the current stream may reuse their memory, and not before. (The allocator's
  /// own record of a second stream would keep each until the GPU is done with it, so that a CPU that runs
  /// ahead fills memory which no plan knows.)
  void enter(std::vector<at::Tensor> tensors) {
    at::cuda::CUDAEvent given = spare();
    given.record(c10::cuda::getCurrentCUDAStream(device_.index()));
    given.block(stream_);
    spare_.push_back(std::move(given));
    entered_ = std::move(tensors);
  }
  /// What the lane was given since the last ticket is done with this one; tickets ascend.
  void leave(Ticket ticket) {
    pending_.push_back({ticket, spare(), std::move(entered_)});
    pending_.back().done.record(stream_);
  }
  /// The current stream goes on after what has this ticket, and all before it. Nothing where it was waited
  /// for.
  void wait(Ticket ticket) {
    if (std::none_of(pending_.begin(), pending_.end(), [&](const Pending& p) { return p.ticket == ticket; }))
      return;
    while (pending_.front().ticket < ticket) recycle();
    pending_.front().done.block(c10::cuda::getCurrentCUDAStream(device_.index()));
    recycle();
  }
  void wait_all() {
    if (!pending_.empty()) wait(pending_.back().ticket);
  }

 private:
  struct Pending {
    Ticket ticket;
    at::cuda::CUDAEvent done;
    std::vector<at::Tensor> held;
  };

  at::cuda::CUDAEvent spare() {
    if (spare_.empty()) return at::cuda::CUDAEvent(cudaEventDisableTiming);
    at::cuda::CUDAEvent event = std::move(spare_.back());
    spare_.pop_back();
    return event;
  }
  void recycle() {
    spare_.push_back(std::move(pending_.front().done));
    pending_.pop_front();
  }

  c10::cuda::CUDAStream stream_;
  at::Device device_;
  std::vector<at::Tensor> entered_;
  std::deque<Pending> pending_;
  std::vector<at::cuda::CUDAEvent> spare_;
};

}  // namespace assay::impl
