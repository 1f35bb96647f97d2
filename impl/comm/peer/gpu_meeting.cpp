#include "impl/comm/peer/gpu_meeting.hpp"

#include <ATen/ATen.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAException.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <thread>

#include "impl/comm/peer/stream_words.hpp"

namespace assay::impl {

namespace {
constexpr std::int64_t word = sizeof(std::uint32_t);
/// Of ranks that begin at the same time: the first copies between two GPUs set up their link.
constexpr std::chrono::seconds patience_on_trial{60};
/// Behind a meeting may lie computation that the stream waits for; the process ends soon in any case.
constexpr std::chrono::seconds patience_of_release{2};
}  // namespace

GpuMeeting::GpuMeeting(Communicator& control, at::Device device, c10::cuda::CUDAStream stream,
                       const Copied& copied)
    : control_(control),
      device_(device),
      stream_(stream),
      // Of another priority than the stream, so that no queue of the GPU's has both.
      release_stream_(c10::cuda::getStreamFromPool(/*isHighPriority=*/false, device.index())),
      words_(at::zeros({control.size() + 1}, at::TensorOptions(at::kInt).device(device))) {
  c10::cuda::CUDACachingAllocator::recordStream(words_.storage().data_ptr(), stream_);
  c10::cuda::getCurrentCUDAStream(device.index()).synchronize();  // the words are zero before anyone writes
  theirs_ = map_peers(control_, device_, copied, words_);
  agree_on_copies(control_, copied, reason_of([&] { try_out(); }));
}

void GpuMeeting::try_out() {
  meet();
  const auto until = std::chrono::steady_clock::now() + patience_on_trial;
  while (!stream_.query()) {
    if (std::chrono::steady_clock::now() > until) {
      let_go({this});
      throw std::runtime_error("words that other GPUs write into its memory do not arrive");
    }
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

void GpuMeeting::meet() {
  const std::uint32_t number = ++meetings_;
  auto* words = static_cast<char*>(words_.data_ptr());
  char* next = words + control_.size() * word;
  write_word(stream_, next, number);
  for (int r = 0; r < control_.size(); ++r)
    if (r != control_.rank())
      C10_CUDA_CHECK(cudaMemcpyAsync(theirs_[static_cast<std::size_t>(r)].begin + control_.rank() * word,
                                     next, word, cudaMemcpyDeviceToDevice, stream_));
  // At or beyond the number: a faster rank may be one meeting on.
  for (int r = 0; r < control_.size(); ++r)
    if (r != control_.rank()) await_word(stream_, words + r * word, number);
}

bool GpuMeeting::open() {
  if (cudaSetDevice(device_.index()) != cudaSuccess) return false;
  constexpr std::uint32_t beyond_all = std::uint32_t{1} << 30;
  const std::vector<std::uint32_t> far(static_cast<std::size_t>(control_.size()), meetings_ + beyond_all);
  cudaMemcpyAsync(words_.data_ptr(), far.data(), far.size() * static_cast<std::size_t>(word),
                  cudaMemcpyHostToDevice, release_stream_);
  return cudaStreamSynchronize(release_stream_) == cudaSuccess;
}

void GpuMeeting::let_go(const std::vector<GpuMeeting*>& meetings) {
  const auto waits = [](const GpuMeeting* each) {
    return cudaStreamQuery(each->stream_) == cudaErrorNotReady;
  };
  // Again and again: ranks that are still there write the numbers of meetings that they were given over
  // these.
  const auto until = std::chrono::steady_clock::now() + patience_of_release;
  do {
    for (GpuMeeting* each : meetings)
      if (!each->open()) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  } while (std::any_of(meetings.begin(), meetings.end(), waits) && std::chrono::steady_clock::now() < until);
}

}  // namespace assay::impl
