#pragma once
#include "impl/ops/cuda_launch.hpp"
#include "spec/ops/quantise/quantise.hpp"
#include "spec/ops/swiglu/gate_activation.hpp"

namespace assay::impl::quantise::cuda {

using spec::quantise::Format;
using spec::quantise::Scaling;

/// What becomes of a source [R, C]: columns [first, first + C) of a matrix [R, width] in FP8, each
/// orientation with codes and scales in the layout of impl/ops/quantise/quantise.hpp; null where it is not
/// asked for.
struct Target {
  Format format = Format::e4m3;
  std::int64_t width = 0, first = 0;
  std::uint8_t *rows = nullptr, *columns = nullptr;
  void *row_scales = nullptr, *column_scales = nullptr;
  /// fp32 [1]. Scaling::tensor reads it; launch_amax raises it to the source's largest magnitude.
  float* amax = nullptr;
};

/// Sources, device pointers, all rows contiguous. x [R, C] of `dtype`, bf16 or fp32.
struct MatrixSource {
  Dtype dtype;
  const void* x;
};
/// rms_norm's y of x [R, C] bf16, rstd [R] and gain [C] fp32.
struct NormSource {
  const void *x, *rstd, *gain;
};
/// swiglu's y of gate_up [R, 2C] bf16.
struct GateSource {
  spec::swiglu::Activation activation;
  const void* gate_up;
};
/// swiglu's gradient of gate and of up from dy [R, C] and gate_up [R, 2C] bf16: two targets; a third for y.
struct GateGradientSource {
  spec::swiglu::Activation activation;
  const void *dy, *gate_up;
};

/// A source's extents and what it is written to: one target, of a gradient two or three.
struct Job {
  std::int64_t R, C;
  const Target* targets;
  int count;
  cudaStream_t stream;
};

/// Raise the targets' amax, which the caller has set to zero or to another part's. No order: same bits
/// always.
ASSAY_KERNEL void launch_amax(const MatrixSource& source, const Job& job);
ASSAY_KERNEL void launch_amax(const NormSource& source, const Job& job);
ASSAY_KERNEL void launch_amax(const GateSource& source, const Job& job);
ASSAY_KERNEL void launch_amax(const GateGradientSource& source, const Job& job);

/// Write codes and scales of every target.
ASSAY_KERNEL void launch_quantise(const MatrixSource& source, Scaling scaling, const Job& job);
ASSAY_KERNEL void launch_quantise(const NormSource& source, Scaling scaling, const Job& job);
ASSAY_KERNEL void launch_quantise(const GateSource& source, Scaling scaling, const Job& job);
ASSAY_KERNEL void launch_quantise(const GateGradientSource& source, Scaling scaling, const Job& job);

/// Codes [R, C] as they are to the target's columns, [C, R].
ASSAY_KERNEL void launch_transpose(const void* codes, const Job& job);

/// Whether the kernels of a source other than a plain matrix take it: rows of 16-byte vectors, and of block
/// scalings parts that begin at a block.
ASSAY_KERNEL bool fits(const NormSource& source, Scaling scaling, std::int64_t C);
ASSAY_KERNEL bool fits(const GateSource& source, Scaling scaling, std::int64_t C);
ASSAY_KERNEL bool fits(const GateGradientSource& source, Scaling scaling, std::int64_t C);

}  // namespace assay::impl::quantise::cuda
