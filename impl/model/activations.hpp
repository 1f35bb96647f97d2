#pragma once
// What forward keeps for backward, per micro-batch. What is undefined backward computes again; which tensors
// those are is the choice of spec/memory/recompute.md. Names follow the equations of spec/ops.
#include <ATen/core/Tensor.h>

#include <vector>

#include "impl/ops/attention.hpp"

namespace assay::impl {

struct BlockActivations {
  at::Tensor x;        ///< [N, D] input of the block
  at::Tensor normed;   ///< [N, D] value of the first norm
  at::Tensor rstd;     ///< [N]
  at::Tensor qkv_raw;  ///< [B, T, H+2K, E] before qk_norm; undefined without qk_norm
  at::Tensor qk_rstd;  ///< [B, T, H+K]; undefined without qk_norm
  at::Tensor qkv;      ///< [B, T, H+2K, E] after rope
  attention::Forward attention;
  at::Tensor x_mid;       ///< [N, D] after the attention branch
  at::Tensor normed_mid;  ///< [N, D] value of the second norm
  at::Tensor rstd_mid;    ///< [N]
  at::Tensor gate_up;     ///< [N, 2F]
  at::Tensor gated;       ///< [N, F] value of SwiGLU
};

/// Everything between one micro-batch's forward and its backward. Backward frees a block's tensors as it
/// leaves it.
struct Activations {
  std::vector<BlockActivations> blocks;  ///< L
  at::Tensor x_final;                    ///< [N, D] input of the final norm
  at::Tensor rstd_final;                 ///< [N]
  at::Tensor d_normed_final;             ///< [N, D] gradient of the final norm's output
};

}  // namespace assay::impl
