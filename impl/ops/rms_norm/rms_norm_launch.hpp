#pragma once
#include "impl/ops/cuda_launch.hpp"
#include "impl/ops/forward_value.hpp"

namespace assay::impl::rms_norm::cuda {

/// Device pointers of impl/ops/rms_norm/rms_norm.hpp; rows contiguous. Gains, statistics and `partial` are
/// fp32 for bf16, else of `dtype`.
struct ForwardArguments {
  Dtype dtype;
  std::int64_t N, D;
  double eps;
  const void *x, *gain;
  const void* residual = nullptr;  ///< added to `sum` first
  void* sum = nullptr;             ///< with a residual: x, which the sum is written to
  void *y, *rstd;                  ///< y null: statistics alone
  float* amax = nullptr;           ///< fp32 [1], raised to the largest magnitude of y as it is rounded
};
ASSAY_KERNEL void launch_forward(const ForwardArguments& a, cudaStream_t stream);

struct BackwardArguments {
  Dtype dtype;
  std::int64_t N, D;
  void* dy;  ///< becomes y where the value is asked for again
  const void *x, *gain, *rstd, *residual;
  void *dx, *dgain;  ///< dx may be `residual`
  void* partial;     ///< [partial_rows(N), D] statistic type, scratch
  ForwardValue value;
};
ASSAY_KERNEL void launch_backward(const BackwardArguments& a, cudaStream_t stream);

/// Whether a row is short enough for the backward kernel: at most 16,384 bf16 entries, 2,048 where rows are
/// not aligned to 16 bytes.
ASSAY_KERNEL bool fits(const BackwardArguments& a);

/// Rows of the scratch that backward sums the gain's gradient in: fixed by N, not by the device, so that the
/// order of the sum is the same everywhere.
ASSAY_KERNEL std::int64_t partial_rows(std::int64_t N);

}  // namespace assay::impl::rms_norm::cuda
