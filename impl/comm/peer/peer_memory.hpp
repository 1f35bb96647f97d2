#pragma once
// Memory of the other GPUs of a host, mapped into this process by CUDA's interprocess handles.
#include <ATen/core/Tensor.h>

#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "impl/comm/communicator.hpp"
#include "impl/comm/peer/copied.hpp"

namespace assay::impl {

/// Another rank's memory.
struct PeerMemory {
  std::shared_ptr<void> mapping;  ///< of the whole allocation, which ends with the last of these
  char* begin = nullptr;          ///< as this process sees it
};

/// Each rank's `memory`, by rank; this rank's own is empty. Every rank of `control` calls at the same time,
/// with as many bytes, of the GPU's caching allocator. Errors: AgreedError(usage), as agree_on_copies.
std::vector<PeerMemory> map_peers(Communicator& control, at::Device device, const Copied& copied,
                                  const at::Tensor& memory);

/// If any rank has a reason why it cannot take part in copies, all ranks throw AgreedError(usage) with the
/// first such rank, its reason and what to set. Collective. `reason`: this rank's; empty: none.
void agree_on_copies(Communicator& control, const Copied& copied, const std::string& reason);

/// The first line of the error that `step` threw; empty where it did not throw. CUDA's own memory of an error
/// is cleared.
std::string line_of(const std::exception& error);
template <class Step>
std::string reason_of(const Step& step) {
  try {
    step();
  } catch (const std::exception& error) {
    return line_of(error);
  }
  return "";
}

}  // namespace assay::impl
