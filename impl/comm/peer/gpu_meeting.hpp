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

/// Each rank writes the number of the meeting into a word of every other one's memory, and its stream waits
/// until theirs have come (stream memory operations): what a stream is given behind a meeting comes after
/// what each rank's stream was given before it. No call waits for the GPU but the first.
class GpuMeeting {
 public:
  /// Ranks meet once, on trial. `copied`: what for. Every rank of `control`, which lives longer, calls at the
  /// same time. Errors: AgreedError(usage), as agree_on_copies.
  GpuMeeting(Communicator& control, at::Device device, c10::cuda::CUDAStream stream, const Copied& copied);

  /// Gives a meeting to the stream.
  void meet();
  /// Makes this rank's streams wait for nobody any more: a rank is lost. All at once, as what one of them was
  /// given may come behind a meeting of another. From any thread; takes until they have nothing to do, at
  /// most some seconds.
  static void let_go(const std::vector<GpuMeeting*>& meetings);

 private:
  void try_out();
  /// Writes what every meeting is before into this rank's words, once. False: the GPU does nothing any more.
  bool open();

  Communicator& control_;
  const at::Device device_;
  const c10::cuda::CUDAStream stream_, release_stream_;
  at::Tensor words_;  ///< [ranks + 1]: the last meeting of each other rank, and the number of this one's
  std::vector<PeerMemory> theirs_;
  std::atomic<std::uint32_t> meetings_ = 0;
};

}  // namespace assay::impl
