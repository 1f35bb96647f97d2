#include "impl/step/step_graph.hpp"

#include <ATen/ATen.h>
#include <ATen/core/CachingHostAllocator.h>
#include <ATen/cuda/CUDAEvent.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>

#include <array>

#include "impl/ops/gemm/cuda_gemm_search.hpp"
#include "spec/error.hpp"

namespace assay::impl::run {

namespace {

class CudaGraphs final : public StepCapture {
 public:
  explicit CudaGraphs(at::Device device)
      : device_(device.has_index() ? device.index() : c10::DeviceIndex{0}),
        stream_(c10::cuda::getStreamFromPool(/*isHighPriority=*/false, device_)) {}
  ~CudaGraphs() override { CudaGraphs::forget(); }

  void on_its_stream(const std::function<void()>& step) override {
    at::cuda::CUDAEvent before;
    before.record(c10::cuda::getCurrentCUDAStream(device_));
    const c10::cuda::CUDAStreamGuard here(stream_);
    before.block(stream_);
    const std::int64_t searching = cuda::searching_calls();
    step();
    searched_ = cuda::searching_calls() != searching;
  }

  /// While algorithms of its products are searched for, calls of a step differ and are timed.
  bool ready() const override { return !searched_; }

  void capture(StepPart part, const std::function<void()>& work) override {
    if (!pool_) begin();
    std::unique_ptr<at::cuda::CUDAGraph>& graph = graphs_[static_cast<std::size_t>(part)];
    graph = std::make_unique<at::cuda::CUDAGraph>(/*keep_graph=*/true);
    try {
      // Thread-local: the loader's thread may go on with its copies.
      graph->capture_begin(*pool_, cudaStreamCaptureModeThreadLocal);
      work();
      graph->capture_end();
    } catch (...) {
      give_up(*graph);
      throw;
    }
    std::size_t& nodes = nodes_[static_cast<std::size_t>(part)];
    C10_CUDA_CHECK(cudaGraphGetNodes(graph->raw_cuda_graph(), nullptr, &nodes));
    graph->instantiate();
  }

  void replay(StepPart part) override { graphs_[static_cast<std::size_t>(part)]->replay(); }

  void forget() override {
    if (!pool_) return;
    for (auto& graph : graphs_) graph.reset();
    pool_.reset();
    c10::cuda::CUDACachingAllocator::emptyCache();
  }

  std::string size() const override {
    std::string text;
    for (const std::size_t nodes : nodes_) text += (text.empty() ? "" : " + ") + std::to_string(nodes);
    return text + " nodes";
  }

 private:
  /// The parts get memory of their own. What earlier steps have left in the allocator would lie beside it.
  void begin() {
    c10::cuda::CUDACachingAllocator::emptyCache();
    pool_ = at::cuda::graph_pool_handle();
  }

  /// Ends a capture that failed. Where CUDA has called it off already, the graph's own end fails too, and
  /// leaves the allocators and the generator of random numbers (cuDNN's attention asks it) capture.
  void give_up(at::cuda::CUDAGraph& graph) noexcept {
    try {
      graph.capture_end();
      return;
    } catch (...) {
    }
    cudaGetLastError();  // it is no error of the next launch
    const auto attempt = [](const auto& call) {
      try {
        call();
      } catch (...) {
      }
    };
    attempt([&] { c10::cuda::CUDACachingAllocator::endAllocateToPool(device_, *pool_); });
    attempt([&] { at::getHostAllocator(at::kCUDA)->end_allocate_to_pool(*pool_); });
    attempt([&] { c10::cuda::CUDACachingAllocator::releasePool(device_, *pool_); });
    attempt([&] { at::getHostAllocator(at::kCUDA)->release_pool(*pool_); });
    attempt([&] {  // one that ends as it should sets the generator right
      const at::Tensor any = at::zeros({1}, at::TensorOptions(at::Device(at::kCUDA, device_)));
      at::cuda::CUDAGraph whole;
      whole.capture_begin({0, 0}, cudaStreamCaptureModeThreadLocal);
      any.fill_(1);
      whole.capture_end();
    });
  }

  const c10::DeviceIndex device_;
  const c10::cuda::CUDAStream stream_;
  bool searched_ = false;  ///< for algorithms, in the last step
  std::optional<c10::MempoolId_t> pool_;
  std::array<std::unique_ptr<at::cuda::CUDAGraph>, step_parts> graphs_;
  std::array<std::size_t, step_parts> nodes_{};
};

}  // namespace

std::unique_ptr<StepCapture> make_cuda_graphs(at::Device device) {
  return std::make_unique<CudaGraphs>(device);
}

std::optional<std::string> reason_against_graph(bool wanted, at::Device device, std::int64_t ranks) {
  if (!wanted) return {};
  if (!device.is_cuda())
    throw UserError(
        ExitCode::usage,
        "compute.cuda_graph=on captures steps on NVIDIA GPUs only, and this run is on the CPU; give "
        "compute.cuda_graph=off");
  if (ranks > 1)
    return "steps are not captured: with " + std::to_string(ranks) +
           " ranks, gradients are summed over NCCL while backward runs, and that is not captured";
  return {};
}

}  // namespace assay::impl::run
