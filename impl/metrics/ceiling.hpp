#pragma once
// Peak and bandwidth of a device by spec/hardware.
#include <ATen/core/Tensor.h>

#include <string>

#include "spec/hardware/hardware.hpp"
#include "spec/ops/linear/linear_precision.hpp"
#include "spec/time/step_ops.hpp"
#include "spec/tolerance.hpp"

namespace assay::impl::metrics {

/// Dense peak of GEMMs in `dtype` of one GPU: fp32 without tf32, fp64 on tensor cores where there is such
/// a peak. Nothing for GPUs that spec/hardware does not know. [flop/s]
std::optional<double> peak_of(const spec::GpuMatch& gpu, Dtype dtype);

/// The precision in data sheets whose peak that is. fp32 GEMMs ask for fp32, not tf32.
spec::Precision precision_of(const spec::GpuMatch& gpu, Dtype dtype);

/// Peak of a model's FLOPs by what computes them (spec/flops/by_precision.md): peak_of where nothing is in
/// FP8.
std::optional<double> peak_of(const spec::GpuMatch& gpu, Dtype dtype, const spec::ModelSpec& model,
                              std::int64_t sequence_length, const spec::LinearPrecision& linear);

/// Name of the GPU as its driver prints it; "CPU" for the CPU.
std::string name_of(at::Device device);

/// Peak and memory bandwidth of a device; 0 where they are not known: of a CPU, an unknown GPU, a name that
/// several GPUs of different bandwidth share.
spec::time::Ceiling ceiling_of(at::Device device, Dtype dtype);

}  // namespace assay::impl::metrics
