#include "impl/comm/peer/peer_stream.hpp"

#include <ATen/ATen.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>

#include "impl/machine/host_name.hpp"

namespace assay::impl {

namespace {
constexpr std::chrono::seconds patience_at_the_end{10};

/// Why this rank cannot reach the others: it is not on the host of rank 0.
std::string other_host(Communicator& control) {
  const std::string here = host_name(), first = control.all_gather(here).front();
  return here == first ? "" : "it runs on " + here + ", rank 0 on " + first;
}
}  // namespace

PeerStream::PeerStream(Communicator& control, at::Device device, const Copied& copied)
    : control_(control),
      device_(device),
      copied_(copied),
      stream_(c10::cuda::getStreamFromPool(/*isHighPriority=*/true, device.index())) {
  agree_on_copies(control_, copied_, other_host(control_));
  meeting_ = std::make_unique<GpuMeeting>(control_, device_, stream_, copied_);
}

PeerStream::~PeerStream() {
  // Not unmapped under copies that wait for a rank that is gone; the process is about to end.
  if (!finished()) static_cast<void>(meeting_.release());
}

void PeerStream::let_go(const std::vector<PeerStream*>& streams) {
  std::vector<GpuMeeting*> meetings;
  meetings.reserve(streams.size());
  for (const PeerStream* each : streams) meetings.push_back(each->meeting_.get());
  GpuMeeting::let_go(meetings);
}

bool PeerStream::finished() const {
  const auto until = std::chrono::steady_clock::now() + patience_at_the_end;
  while (cudaStreamQuery(stream_) == cudaErrorNotReady) {
    cudaGetLastError();  // no memory of it
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  return true;
}

std::shared_ptr<void> PeerStream::share(const at::Tensor& memory, const at::Tensor& staging) {
  auto* added = new Memory{static_cast<const char*>(memory.const_data_ptr()),
                           static_cast<std::int64_t>(memory.nbytes()),
                           {},
                           staging};
  std::shared_ptr<Memory> handle(added, [this](Memory* ended) {
    std::erase(memories_, ended);
    if (finished()) delete ended;  // else as in the destructor
  });
  added->peers = map_peers(control_, device_, copied_, memory);
  memories_.push_back(added);
  return handle;
}

const PeerStream::Memory* PeerStream::find(const at::Tensor& tensor) const {
  const auto* begin = static_cast<const char*>(tensor.const_data_ptr());
  const auto size = static_cast<std::int64_t>(tensor.nbytes());
  for (const Memory* memory : memories_)
    if (begin >= memory->begin && begin + size <= memory->begin + memory->size) return memory;
  return nullptr;
}

}  // namespace assay::impl
