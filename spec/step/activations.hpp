#pragma once
// What forward keeps for backward, per micro-batch. What is undefined backward computes again; which tensors
// those are is the choice of spec/model/recompute.md. Names follow the equations of spec/ops.
#include <vector>

namespace assay::spec::step {

template <class Ops>
struct BlockActivations {
  typename Ops::Tensor x;             ///< [N, D] input of the block
  typename Ops::Operand normed;       ///< [N, D] value of the first norm
  typename Ops::Tensor rstd;          ///< [N]
  typename Ops::Tensor qkv_raw;       ///< [B, T, H + 2K, E] before qk_norm; undefined without qk_norm
  typename Ops::Tensor qk_rstd;       ///< [B, T, H + K], across heads [B, T, 2]; undefined without qk_norm
  typename Ops::Tensor qkv;           ///< [B, T, H + 2K, E] after rope; latent: [N, H (2E + W)]
  typename Ops::Attention attention;  ///< y [B, T, H, E or W] and lse [B, H, T]
  typename Ops::Operand attended;  ///< [N, H E] attention's y as the output GEMM's weight gradient reads it
  // Of latent attention; those of queries are undefined where queries are not compressed.
  typename Ops::Tensor query_down, key_value_down;       ///< [N, Cq], [N, Ckv]
  typename Ops::Tensor query_rstd, key_value_rstd;       ///< [N]
  typename Ops::Operand query_normed, key_value_normed;  ///< values of their norms
  typename Ops::Tensor shared_key;                       ///< [N, R] before rope
  typename Ops::Tensor x_mid;                            ///< [N, D] after the attention branch
  typename Ops::Operand normed_mid;                      ///< [N, D] value of the second norm
  typename Ops::Tensor rstd_mid;                         ///< [N]
  typename Ops::Tensor gate_up;                          ///< [N, 2F]; of experts [N A, 2G]
  typename Ops::Operand gated;    ///< [N, F] value of the gated activation; of experts [N A, G], weighted
  typename Ops::Operand arrived;  ///< [M, D] tokens of all expert ranks that visit this one, of several
  typename Ops::Routing routing;  ///< which experts a token visits; undefined in a dense block
  typename Ops::Tensor shared_gate_up;  ///< [N, 2S]; undefined without shared experts
  typename Ops::Operand shared_gated;   ///< [N, S]
};

/// Everything between one micro-batch's forward and its backward. Backward frees a block's tensors as it
/// leaves the block.
template <class Ops>
struct Activations {
  std::vector<BlockActivations<Ops>> blocks;  ///< L
  typename Ops::Tensor x_final;               ///< [N, D] input of the final norm
  typename Ops::Tensor rstd_final;            ///< [N]
  typename Ops::Tensor d_normed_final;        ///< [N, D] gradient of the final norm's output
};

}  // namespace assay::spec::step
