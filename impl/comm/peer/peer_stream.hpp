#pragma once
// A stream that reads other GPUs' memory. Only for files that know CUDA.
#include <ATen/core/Tensor.h>
#include <c10/cuda/CUDAStream.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "impl/comm/communicator.hpp"
#include "impl/comm/peer/copied.hpp"
#include "impl/comm/peer/gpu_meeting.hpp"
#include "impl/comm/peer/peer_memory.hpp"

namespace assay::impl {

/// A stream for copies between the GPUs of a communicator's ranks, all of one host. It has its own meetings
/// with the streams of the other ranks, and memory that the ranks have mapped from one another. Derived
/// classes say what it copies. Calls wait for the GPU when memory is mapped and when handles end.
class PeerStream {
 public:
  PeerStream(const PeerStream&) = delete;
  PeerStream& operator=(const PeerStream&) = delete;

  c10::cuda::CUDAStream stream() const { return stream_; }

  /// Maps `memory` on all ranks, which call at the same time with as many bytes. `staging`: where a derived
  /// class keeps copies from other ranks until it uses them; the handle keeps it alive. The handle outlives
  /// neither this nor `memory`. Errors: AgreedError(usage), as agree_on_copies.
  std::shared_ptr<void> share(const at::Tensor& memory, const at::Tensor& staging = {});
  /// Whether a tensor lies in memory whose handle lives.
  bool shared(const at::Tensor& tensor) const { return find(tensor) != nullptr; }

  /// GpuMeeting::let_go of every such stream. From here on the results of copies are undefined.
  static void let_go(const std::vector<PeerStream*>& streams);

 protected:
  struct Memory {
    const char* begin = nullptr;
    std::int64_t size = 0;          ///< [B]
    std::vector<PeerMemory> peers;  ///< the other ranks'
    at::Tensor staging;
  };

  /// Every rank of `control`, which lives longer, calls at the same time. Errors: AgreedError(usage) with the
  /// first rank that cannot take part, and why.
  PeerStream(Communicator& control, at::Device device, const Copied& copied);
  ~PeerStream();

  Communicator& control() const { return control_; }
  at::Device device() const { return device_; }
  const Memory* find(const at::Tensor& tensor) const;
  void meet() { meeting_->meet(); }
  /// Calls `use` with each other rank, the next one first, so that not all ranks read the same GPU at once.
  template <class Use>
  void for_other_ranks(const Use& use) const {
    for (int i = 1; i < control_.size(); ++i) use((control_.rank() + i) % control_.size());
  }

 private:
  /// Waits some seconds for the stream to finish its work; returns whether it has.
  bool finished() const;

  Communicator& control_;
  const at::Device device_;
  const Copied copied_;
  const c10::cuda::CUDAStream stream_;
  std::unique_ptr<GpuMeeting> meeting_;
  std::vector<Memory*> memories_;  ///< each its handle's
};

}  // namespace assay::impl
