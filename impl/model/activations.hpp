#pragma once
// What forward keeps for backward, per micro-batch. The values of norms and of SwiGLU are not kept: backward
// has them again for one pass over memory and no matrix product. Names follow the equations of spec/ops.
#include <ATen/core/Tensor.h>

#include <vector>

#include "impl/ops/attention.hpp"

namespace assay::impl {

struct BlockActivations {
  at::Tensor x;        ///< [N, D] input of the block
  at::Tensor rstd;     ///< [N]
  at::Tensor qkv_raw;  ///< [B, T, H+2K, E] before qk_norm; undefined without qk_norm
  at::Tensor qk_rstd;  ///< [B, T, H+K]; undefined without qk_norm
  at::Tensor qkv;      ///< [B, T, H+2K, E] after rope
  attention::Forward attention;
  at::Tensor x_mid;     ///< [N, D] after the attention branch
  at::Tensor rstd_mid;  ///< [N]
  at::Tensor gate_up;   ///< [N, 2F]
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
