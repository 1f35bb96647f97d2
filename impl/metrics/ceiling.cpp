#include "impl/metrics/ceiling.hpp"

#include <ATen/cuda/CUDAContext.h>

#include "spec/flops/by_precision.hpp"

namespace assay::impl::metrics {

spec::Precision precision_of(const spec::GpuMatch& gpu, Dtype dtype) {
  if (dtype == Dtype::bf16) return spec::Precision::bf16;
  if (dtype == Dtype::f32) return spec::Precision::fp32;
  return spec::dense_peak(gpu, spec::Precision::fp64_tensor) ? spec::Precision::fp64_tensor
                                                             : spec::Precision::fp64;
}

std::optional<double> peak_of(const spec::GpuMatch& gpu, Dtype dtype) {
  return spec::dense_peak(gpu, precision_of(gpu, dtype));
}

std::optional<double> peak_of(const spec::GpuMatch& gpu, Dtype dtype, const spec::ModelSpec& model,
                              std::int64_t sequence_length, const spec::LinearPrecision& linear) {
  return spec::dense_peak(
      gpu, spec::exact_flops_by_precision(model, sequence_length, precision_of(gpu, dtype), linear));
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
