#pragma once
#include "impl/ops/cuda_launch.hpp"

namespace assay::impl::bias::cuda {

/// Device pointers of impl/ops/bias/bias.hpp; rows contiguous. dbias and `partial` are fp32 for bf16, else of
/// `dtype`.
struct BackwardArguments {
  Dtype dtype;
  std::int64_t N, out;
  const void* dy;
  void* dbias;
  void* partial;              ///< [partial_rows, out], scratch
  std::int64_t partial_rows;  ///< spec::bias::partial_rows(N)
};
ASSAY_KERNEL void launch_backward(const BackwardArguments& a, cudaStream_t stream);

}  // namespace assay::impl::bias::cuda
