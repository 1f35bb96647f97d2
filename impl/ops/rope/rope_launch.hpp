#pragma once
#include "impl/ops/cuda_launch.hpp"

namespace assay::impl::rope::cuda {

/// Device pointers of impl/ops/rope/rope.hpp: x [tokens, heads, E], table [positions, E/2] of the arithmetic
/// type; `positions` [tokens] or null, then token n has position n mod T.
struct Arguments {
  Dtype dtype;
  std::int64_t tokens, T, heads, rotated, E;
  void* x;
  const void *cosine, *sine;
  const std::int32_t* positions;
  bool inverse;
};
ASSAY_KERNEL void launch(const Arguments& a, cudaStream_t stream);

/// One of dq, dk and dv: [batches, T, heads, E], entries of a head side by side, strides in entries.
struct Part {
  const void* x;
  std::int64_t heads, batch_stride, token_stride, head_stride;
};
/// `out` [tokens, sum of heads, E]: the first two parts turned back, the third as it is.
struct JoinArguments {
  Dtype dtype;
  std::int64_t tokens, T, E;
  Part parts[3];
  void* out;
  const void *cosine, *sine;
  const std::int32_t* positions;
};
ASSAY_KERNEL void launch(const JoinArguments& a, cudaStream_t stream);

}  // namespace assay::impl::rope::cuda
