#include "impl/comm/peer/peer_copies.hpp"

#include <ATen/ATen.h>
#include <c10/cuda/CUDAException.h>
#include <cuda_runtime_api.h>

#include <stdexcept>

namespace assay::impl {

PeerCopies::PeerCopies(Communicator& control, at::Device device)
    : PeerStream(control, device, copied_weights),
      // The copies wait for other ranks, the copy of the own shard does not.
      own_stream_(c10::cuda::getStreamFromPool(/*isHighPriority=*/true, device.index())),
      begun_(cudaEventDisableTiming),
      own_done_(cudaEventDisableTiming) {}

void PeerCopies::gather(const at::Tensor& shard, const at::Tensor& whole) {
  const int ranks = control().size(), rank = control().rank();
  const bool in_place = check_parts(whole, shard, rank, ranks);
  const Memory* memory = find(shard);
  if (!memory) throw std::invalid_argument("a shard outside of the memory that is copied from");
  const auto size = static_cast<std::int64_t>(shard.nbytes());
  const std::int64_t here = static_cast<const char*>(shard.const_data_ptr()) - memory->begin,
                     step = in_place ? size : 0;  // from a rank's shard to the next one's, each in its memory
  const std::int64_t first = here - rank * step, last = first + (ranks - 1) * step;
  if (first < 0 || last + size > memory->size)
    throw std::invalid_argument("another rank's shard would lie outside of its memory");
  auto* to = static_cast<char*>(whole.data_ptr());
  const auto copy = [&](std::int64_t r, const char* from, const c10::cuda::CUDAStream& stream) {
    C10_CUDA_CHECK(cudaMemcpyAsync(to + r * size, from, static_cast<std::size_t>(size),
                                   cudaMemcpyDeviceToDevice, stream));
  };
  if (!in_place) {
    begun_.record(stream());
    begun_.block(own_stream_);
    copy(rank, memory->begin + here, own_stream_);
    own_done_.record(own_stream_);
  }
  meet();
  for_other_ranks(
      [&](int r) { copy(r, memory->peers[static_cast<std::size_t>(r)].begin + first + r * step, stream()); });
  meet();
  if (!in_place) own_done_.block(stream());
}

}  // namespace assay::impl
