#include "impl/comm/peer/peer_sums.hpp"

#include <ATen/ATen.h>
#include <c10/cuda/CUDAException.h>
#include <cuda_runtime_api.h>

#include <stdexcept>
#include <string>

#include "impl/comm/peer/rank_sum_launch.hpp"
#include "impl/ops/cuda_tensor.hpp"

namespace assay::impl {

PeerSums::PeerSums(Communicator& control, at::Device device)
    : PeerStream(control, device, copied_gradients) {}

void PeerSums::reduce_scatter(const at::Tensor& whole, const at::Tensor& shard) {
  const int ranks = control().size(), rank = control().rank();
  check_parts(whole, shard, rank, ranks);
  const Dtype dtype = cuda::dtype_of(whole);
  const Memory* memory = find(whole);
  if (!memory) throw std::invalid_argument("a gradient outside of the memory that is copied from");
  const auto part = static_cast<std::int64_t>(shard.nbytes());
  if (!memory->staging.defined() || static_cast<std::int64_t>(memory->staging.nbytes()) < (ranks - 1) * part)
    throw std::invalid_argument("the staging memory has no room for " + std::to_string(ranks - 1) +
                                " parts of " + std::to_string(part) + " bytes");
  const auto* own = static_cast<const char*>(whole.const_data_ptr()) + rank * part;
  auto* staging = static_cast<char*>(memory->staging.data_ptr());
  meet();
  for_other_ranks([&](int r) {
    const char* from = memory->peers[static_cast<std::size_t>(r)].begin + (own - memory->begin);
    C10_CUDA_CHECK(cudaMemcpyAsync(staging + (r < rank ? r : r - 1) * part, from,
                                   static_cast<std::size_t>(part), cudaMemcpyDeviceToDevice, stream()));
  });
  // The ranks meet before the sum: it may wait for SMs, and no other rank needs it. It reads and writes
  // only what nobody copies: this rank's part and its staging memory.
  meet();
  rank_sum::cuda::launch(dtype, shard.numel(), rank, ranks, own, staging, shard.data_ptr(), stream());
}

}  // namespace assay::impl
