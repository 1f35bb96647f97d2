#pragma once
#include "impl/ops/cuda_launch.hpp"

namespace assay::impl::embedding::cuda {

/// dtable[id] += dy[n] for every place n of `id`, in order of n. `ids` [N] sorted, `places` [N] the row of dy
/// that each came from, ascending among equal ids. dy [N, D], dtable [V, D] fp32 for bf16, else of `dtype`.
struct BackwardArguments {
  Dtype dtype;
  std::int64_t N, D;
  const void* dy;
  const std::int64_t *ids, *places;
  void* dtable;
};
void launch_backward(const BackwardArguments& a, cudaStream_t stream);

}  // namespace assay::impl::embedding::cuda
