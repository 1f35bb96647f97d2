#include "impl/comm/peer/peer_memory.hpp"

#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <cuda_runtime_api.h>

#include <cstddef>
#include <stdexcept>

#include "impl/comm/hexadecimal.hpp"
#include "spec/error.hpp"

namespace assay::impl {

namespace {
/// "bytes offset handle" of another rank, where the offset is from the begin of the allocation.
PeerMemory mapped(const std::string& text, std::size_t bytes, std::size_t rank) {
  const std::size_t first = text.find(' '), second = text.find(' ', first + 1);
  if (std::stoull(text) != bytes)
    throw std::runtime_error("it has " + std::to_string(bytes) + " bytes to share, rank " +
                             std::to_string(rank) + " " + text.substr(0, first));
  PeerMemory peer;
  peer.mapping = c10::cuda::CUDACachingAllocator::getIpcDevPtr(from_hexadecimal(text.substr(second + 1)));
  peer.begin = static_cast<char*>(peer.mapping.get()) + std::stoll(text.substr(first));
  return peer;
}
}  // namespace

std::vector<PeerMemory> map_peers(Communicator& control, at::Device device, const Copied& copied,
                                  const at::Tensor& memory) {
  std::string mine;
  const std::string not_shared = reason_of([&] {
    // The allocator knows where an allocation begins, not what lies within.
    auto* whole = static_cast<char*>(memory.storage().mutable_data());
    const auto handle = c10::cuda::CUDACachingAllocator::shareIpcHandle(whole);
    const std::ptrdiff_t within = static_cast<char*>(memory.data_ptr()) - whole;
    mine = std::to_string(memory.nbytes()) + " " + std::to_string(handle.offset + within) + " " +
           to_hexadecimal(handle.handle);
  });
  const auto handles = control.all_gather(mine);
  agree_on_copies(control, copied, not_shared);
  std::vector<PeerMemory> peers(handles.size());
  agree_on_copies(control, copied, reason_of([&] {
                    const c10::cuda::CUDAGuard guard(device);
                    for (std::size_t r = 0; r < handles.size(); ++r)
                      if (r != static_cast<std::size_t>(control.rank()))
                        peers[r] = mapped(handles[r], memory.nbytes(), r);
                  }));
  return peers;
}

void agree_on_copies(Communicator& control, const Copied& copied, const std::string& reason) {
  const auto reasons = control.all_gather(reason);
  for (std::size_t r = 0; r < reasons.size(); ++r)
    if (!reasons[r].empty())
      throw AgreedError(ExitCode::usage,
                        refusal(copied, "rank " + std::to_string(r) + " of these " +
                                            std::to_string(reasons.size()) + " cannot: " + reasons[r]));
}

std::string line_of(const std::exception& error) {
  cudaGetLastError();
  const std::string text = error.what();
  return text.substr(0, text.find('\n'));  // the lines below are a backtrace
}

}  // namespace assay::impl
