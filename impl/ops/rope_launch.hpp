#pragma once
#include "impl/ops/cuda_launch.hpp"

namespace assay::impl::rope::cuda {

/// Device pointers of impl/ops/rope.hpp: x [tokens, heads, E], table [positions, E/2] of the arithmetic type;
/// `positions` [tokens] or null, then token n has position n mod T.
struct Arguments {
  Dtype dtype;
  std::int64_t tokens, T, heads, rotated, E;
  void* x;
  const void *cosine, *sine;
  const std::int32_t* positions;
  bool inverse;
};
void launch(const Arguments& a, cudaStream_t stream);

}  // namespace assay::impl::rope::cuda
