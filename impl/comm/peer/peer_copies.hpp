#pragma once
// All-gathers without SMs: each GPU copies the others' shards by its copy engines.
// Only for files that know CUDA.
#include <ATen/cuda/CUDAEvent.h>

#include "impl/comm/peer/peer_stream.hpp"

namespace assay::impl {

/// An all-gather is a few entries in a stream: the ranks meet on their GPUs, each copies the other ranks'
/// shards, and they meet again. The first meeting keeps a shard from being read before its owner's stream has
/// reached the all-gather, the second from being overwritten while it is read.
class PeerCopies : public PeerStream {
 public:
  /// As PeerStream.
  PeerCopies(Communicator& control, at::Device device);

  /// Enqueues the all-gather of a shard in mapped memory on stream(). Errors: std::invalid_argument where
  /// another rank's shard would lie outside of its memory.
  void gather(const at::Tensor& shard, const at::Tensor& whole);

 private:
  const c10::cuda::CUDAStream own_stream_;
  at::cuda::CUDAEvent begun_, own_done_;
};

}  // namespace assay::impl
