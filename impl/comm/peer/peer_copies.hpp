#pragma once
// Gathers without multiprocessors: each GPU copies the others' shards by its copy engines.
// Only for files that know CUDA.
#include <ATen/cuda/CUDAEvent.h>

#include "impl/comm/peer/peer_stream.hpp"

namespace assay::impl {

/// A gather is a few entries in a stream: the ranks meet on their GPUs, each copies from the others, and they
/// meet again. So no shard is read before its owner's stream has come to the gather, and none is written over
/// while it is read.
class PeerCopies : public PeerStream {
 public:
  /// As PeerStream.
  PeerCopies(Communicator& control, at::Device device);

  /// Gives the gather of a shared shard to stream(). Errors: std::invalid_argument where another rank's shard
  /// would lie outside of its memory.
  void gather(const at::Tensor& shard, const at::Tensor& whole);

 private:
  const c10::cuda::CUDAStream own_stream_;
  at::cuda::CUDAEvent begun_, own_done_;
};

}  // namespace assay::impl
