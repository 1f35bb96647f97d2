#pragma once
#include "impl/ops/cuda_launch.hpp"

namespace assay::impl::latent_attention::cuda {

/// Device pointers of impl/ops/latent_attention/latent_attention.hpp. Forward reads the three parts and
/// writes qkv, backward the other way; tables [positions, R/2] of the arithmetic type, `positions` [tokens]
/// or null, then token n has position n mod T.
struct Arguments {
  Dtype dtype;
  std::int64_t tokens, T, H, E, R, W;
  bool neighbours;  ///< pairs, else halves
  void *query, *key_value, *shared_key, *qkv;
  const void *cosine, *sine;
  const std::int32_t* positions;
};
ASSAY_KERNEL void launch_forward(const Arguments& a, cudaStream_t stream);
ASSAY_KERNEL void launch_backward(const Arguments& a, cudaStream_t stream);

}  // namespace assay::impl::latent_attention::cuda
