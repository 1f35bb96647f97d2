#pragma once
// Reduce-scatters by copy engines: each GPU copies the other ranks' parts of its shard and adds them up. Only
// for files that know CUDA.
#include "impl/comm/peer/peer_stream.hpp"

namespace assay::impl {

/// A reduce-scatter is a few entries in a stream. The ranks meet on their GPUs. Each copies the other ranks'
/// parts of its own shard into staging memory. They meet again, and a kernel on each adds up in the order of
/// the ranks: the same bits in every run. The meetings keep a part from being read too early and from being
/// overwritten while it is read. No rank waits for the kernels of the others.
class PeerSums : public PeerStream {
 public:
  /// As PeerStream.
  PeerSums(Communicator& control, at::Device device);

  /// Enqueues the reduce-scatter of a whole in mapped memory on stream():
  /// Communicator::begin_reduce_scatter_sum. fp64, fp32, bf16: bf16 is added in fp32 and rounded once.
  /// Errors: c10::Error on another dtype, std::invalid_argument where the staging memory is too small for the
  /// others' parts.
  void reduce_scatter(const at::Tensor& whole, const at::Tensor& shard);
};

}  // namespace assay::impl
