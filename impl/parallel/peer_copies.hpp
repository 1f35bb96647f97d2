#pragma once
// Gathers without multiprocessors: each GPU copies the others' shares by its copy engines.
// Only for files that know CUDA.
#include <ATen/core/Tensor.h>
#include <ATen/cuda/CUDAEvent.h>
#include <c10/cuda/CUDAStream.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "impl/parallel/communicator.hpp"
#include "impl/parallel/gpu_meeting.hpp"
#include "impl/parallel/peer_memory.hpp"

namespace assay::impl {

/// Between the GPUs of the ranks of a communicator, all of one host. Memory is mapped into the other
/// processes once; then a gather is a few entries in a stream: the ranks meet on their GPUs, each copies from
/// the others, and they meet again. So no share is read before its owner's stream has come to the gather, and
/// none is written over while it is read. Calls wait for the GPU when memory is mapped and when handles end.
class PeerCopies {
 public:
  /// Every rank of `control`, which lives longer, calls at the same time. Errors: AgreedError(usage) with the
  /// first rank that cannot take part, and why.
  PeerCopies(Communicator& control, at::Device device);
  ~PeerCopies();
  PeerCopies(const PeerCopies&) = delete;
  PeerCopies& operator=(const PeerCopies&) = delete;

  c10::cuda::CUDAStream stream() const { return stream_; }

  /// Communicator::gather_by_copies. The handle outlives neither this nor `memory`.
  std::shared_ptr<void> share(const at::Tensor& memory);

  /// Whether a share lies in memory of which a handle lives.
  bool shared(const at::Tensor& share) const { return find(share) != nullptr; }
  /// Gives the gather of a shared share to stream(). Errors: std::invalid_argument where another rank's share
  /// would lie outside of its memory.
  void gather(const at::Tensor& share, const at::Tensor& whole);

  /// GpuMeeting::let_go: what gathers bring is undefined from here on.
  void let_go() { meeting_->let_go(); }

 private:
  struct Memory {
    const char* begin = nullptr;
    std::int64_t size = 0;          ///< [B]
    std::vector<PeerMemory> peers;  ///< the other ranks'
  };

  const Memory* find(const at::Tensor& share) const;
  /// Waits until the stream has nothing to do, for some seconds; whether it has.
  bool finished() const;

  Communicator& control_;
  const at::Device device_;
  const c10::cuda::CUDAStream stream_, own_stream_;
  at::cuda::CUDAEvent begun_, own_done_;
  std::unique_ptr<GpuMeeting> meeting_;
  std::vector<Memory*> memories_;  ///< each its handle's
};

}  // namespace assay::impl
