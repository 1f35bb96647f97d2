#include "impl/metrics/ceiling.hpp"

#include <ATen/cuda/CUDAContext.h>

namespace assay::impl::metrics {

std::optional<double> peak_of(const spec::GpuMatch& gpu, Dtype dtype) {
  switch (dtype) {
    case Dtype::bf16:
      return spec::dense_peak(gpu, spec::Precision::bf16);
    case Dtype::f32:  // the GEMMs ask for fp32, not tf32
      return spec::dense_peak(gpu, spec::Precision::fp32);
    case Dtype::f64: {
      const auto tensor = spec::dense_peak(gpu, spec::Precision::fp64_tensor);
      return tensor ? tensor : spec::dense_peak(gpu, spec::Precision::fp64);
    }
  }
  return {};
}

std::string name_of(at::Device device) {
  return device.is_cuda() ? at::cuda::getDeviceProperties(device.index())->name : "CPU";
}

spec::time::Ceiling ceiling_of(at::Device device, Dtype dtype) {
  if (!device.is_cuda()) return {};
  const spec::GpuMatch match = spec::find_gpu(name_of(device));
  spec::time::Ceiling out{.peak = peak_of(match, dtype).value_or(0)};
  if (match.gpu && match.gpu->memory_bandwidth) out.bandwidth = match.gpu->memory_bandwidth->value;
  return out;
}

}  // namespace assay::impl::metrics
