#include "impl/parallel/peer_copies.hpp"

#include <ATen/ATen.h>
#include <c10/cuda/CUDAException.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>

#include "impl/parallel/host_name.hpp"

namespace assay::impl {

namespace {
constexpr std::chrono::seconds patience_at_the_end{10};

/// Why this rank cannot reach the others: it is not on the host of rank 0.
std::string other_host(Communicator& control) {
  const std::string here = host_name(), first = control.all_gather(here).front();
  return here == first ? "" : "it runs on " + here + ", rank 0 on " + first;
}
}  // namespace

PeerCopies::PeerCopies(Communicator& control, at::Device device)
    : control_(control),
      device_(device),
      // The copies wait for other ranks, the copy of the own share does not.
      stream_(c10::cuda::getStreamFromPool(/*isHighPriority=*/true, device.index())),
      own_stream_(c10::cuda::getStreamFromPool(/*isHighPriority=*/true, device.index())),
      begun_(cudaEventDisableTiming),
      own_done_(cudaEventDisableTiming) {
  agree_on_copies(control_, other_host(control_));
  meeting_ = std::make_unique<GpuMeeting>(control_, device_, stream_);
}

PeerCopies::~PeerCopies() {
  // Not unmapped under copies that wait for a rank that is gone; the process is about to end.
  if (!finished()) static_cast<void>(meeting_.release());
}

bool PeerCopies::finished() const {
  const auto until = std::chrono::steady_clock::now() + patience_at_the_end;
  while (cudaStreamQuery(stream_) == cudaErrorNotReady) {
    cudaGetLastError();  // no memory of it
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  return true;
}

std::shared_ptr<void> PeerCopies::share(const at::Tensor& memory) {
  auto* added = new Memory{
      static_cast<const char*>(memory.const_data_ptr()), static_cast<std::int64_t>(memory.nbytes()), {}};
  std::shared_ptr<Memory> handle(added, [this](Memory* ended) {
    std::erase(memories_, ended);
    if (finished()) delete ended;  // else as in the destructor
  });
  added->peers = map_peers(control_, device_, memory);
  memories_.push_back(added);
  return handle;
}

const PeerCopies::Memory* PeerCopies::find(const at::Tensor& share) const {
  const auto* begin = static_cast<const char*>(share.const_data_ptr());
  const auto size = static_cast<std::int64_t>(share.nbytes());
  for (const Memory* memory : memories_)
    if (begin >= memory->begin && begin + size <= memory->begin + memory->size) return memory;
  return nullptr;
}

void PeerCopies::gather(const at::Tensor& share, const at::Tensor& whole) {
  const bool in_place = check_parts(whole, share, control_.rank(), control_.size());
  const Memory* memory = find(share);
  if (!memory) throw std::invalid_argument("a share outside of the memory that is copied from");
  const auto size = static_cast<std::int64_t>(share.nbytes());
  const std::int64_t here = static_cast<const char*>(share.const_data_ptr()) - memory->begin,
                     step = in_place ? size : 0;  // from a rank's share to the next one's, each in its memory
  const std::int64_t first = here - control_.rank() * step, last = first + (control_.size() - 1) * step;
  if (first < 0 || last + size > memory->size)
    throw std::invalid_argument("another rank's share would lie outside of its memory");
  auto* to = static_cast<char*>(whole.data_ptr());
  const auto copy = [&](std::int64_t r, const char* from, const c10::cuda::CUDAStream& stream) {
    C10_CUDA_CHECK(cudaMemcpyAsync(to + r * size, from, static_cast<std::size_t>(size),
                                   cudaMemcpyDeviceToDevice, stream));
  };
  if (!in_place) {
    begun_.record(stream_);
    begun_.block(own_stream_);
    copy(control_.rank(), memory->begin + here, own_stream_);
    own_done_.record(own_stream_);
  }
  meeting_->meet();
  // Each begins with its neighbour: no GPU is read by all others at once.
  for (int i = 1; i < control_.size(); ++i) {
    const int r = (control_.rank() + i) % control_.size();
    copy(r, memory->peers[static_cast<std::size_t>(r)].begin + first + r * step, stream_);
  }
  meeting_->meet();
  if (!in_place) own_done_.block(stream_);
}

}  // namespace assay::impl
