#pragma once
// Ranks that meet on their GPUs, in the middle of a stream. Only for files that know CUDA.
#include <ATen/core/Tensor.h>
#include <c10/cuda/CUDAStream.h>

#include <atomic>
#include <cstdint>
#include <vector>

#include "impl/comm/communicator.hpp"
#include "impl/comm/peer/peer_memory.hpp"

namespace assay::impl {

/// Each rank writes the number of the meeting into a word of every other rank's memory, and its stream waits
/// until their numbers have arrived (stream memory operations). So the work behind a meeting starts after the
/// work of every rank's stream before it. Only the first call waits for the GPU.
class GpuMeeting {
 public:
  /// Ranks meet once, on trial. `copied`: what for. Every rank of `control`, which lives longer, calls at the
  /// same time. Errors: AgreedError(usage), as agree_on_copies.
  GpuMeeting(Communicator& control, at::Device device, c10::cuda::CUDAStream stream, const Copied& copied);

  /// Enqueues a meeting on the stream.
  void meet();
  /// A rank is lost: makes this rank's streams wait for no other rank any more. Releases all streams at once,
  /// since work of one may stand behind a meeting of another. From any thread; returns when they have
  /// finished, after some seconds at most.
  static void let_go(const std::vector<GpuMeeting*>& meetings);

 private:
  void try_out();
  /// Writes a number beyond every meeting into this rank's words, once. False: the GPU does not respond any
  /// more.
  bool open();

  Communicator& control_;
  const at::Device device_;
  const c10::cuda::CUDAStream stream_, release_stream_;
  at::Tensor words_;  ///< [ranks + 1]: the last meeting of each other rank, and the number of this one's
  std::vector<PeerMemory> theirs_;
  std::atomic<std::uint32_t> meetings_ = 0;
};

}  // namespace assay::impl
