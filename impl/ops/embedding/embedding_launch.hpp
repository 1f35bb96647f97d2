#pragma once
#include "impl/ops/cuda_launch.hpp"

namespace assay::impl::embedding::cuda {

/// y[n] = table[ids[n]], zeros where the id is `foreign`. table [V, D], y [N, D] of `dtype`.
struct ForwardArguments {
  Dtype dtype;
  std::int64_t N, D, foreign;
  const void* table;
  const std::int64_t* ids;
  void* y;
};
ASSAY_KERNEL void launch_forward(const ForwardArguments& a, cudaStream_t stream);

/// dtable[id] += dy[n] for every place n of `id`, in order of n. `ids` [N] sorted, `places` [N] the row of dy
/// that each came from, ascending among equal ids. dy [N, D], dtable [V, D] fp32 for bf16, else of `dtype`.
struct BackwardArguments {
  Dtype dtype;
  std::int64_t N, D, foreign;  ///< foreign: the id of rows that add nothing
  const void* dy;
  const std::int64_t *ids, *places;
  void* dtable;
};
ASSAY_KERNEL void launch_backward(const BackwardArguments& a, cudaStream_t stream);

}  // namespace assay::impl::embedding::cuda
