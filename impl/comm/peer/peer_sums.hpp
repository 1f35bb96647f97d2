#pragma once
// Sums of shards whose parts come by copy engines: each GPU copies the others' parts of its shard and adds
// them up. Only for files that know CUDA.
#include "impl/comm/peer/peer_stream.hpp"

namespace assay::impl {

/// A reduce_scatter is a few entries in a stream: the ranks meet on their GPUs, each copies from the others
/// their parts of its own shard into staging memory, they meet again, and each adds up, in the order of the
/// ranks, in a kernel of its own: the same bits in every run. So no part is read before its owner's stream
/// has come to the sum, and none is written over while it is read. Nobody waits for the others' kernels.
class PeerSums : public PeerStream {
 public:
  /// As PeerStream.
  PeerSums(Communicator& control, at::Device device);

  /// Gives the sum of a whole in shared memory to stream(): Communicator::begin_reduce_scatter_sum. fp64,
  /// fp32, bf16: bf16 is added in fp32 and rounded once. Errors: c10::Error on another dtype,
  /// std::invalid_argument where the staging memory is too small for the others' parts.
  void reduce_scatter(const at::Tensor& whole, const at::Tensor& shard);
};

}  // namespace assay::impl
