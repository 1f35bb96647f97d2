#pragma once
#include <ATen/core/Tensor.h>

namespace assay::impl::qk_norm {

struct Forward {
  at::Tensor qkv;   ///< [B, T, H + 2K, E]: q and k heads normalised, v heads as given
  at::Tensor rstd;  ///< [B, T, H + K], fp32 for bf16, else dtype of qkv
};

/// rms_norm over E of every query head (gain q_gain) and key head (gain k_gain).      [spec/ops/qk_norm.md]
/// Shapes: qkv [B, T, H + 2K, E] contiguous, heads ordered q | k | v; q_gain, k_gain [E] of rstd's dtype;
/// `heads` = H, `kv_heads` = K. Errors: SpecError qk_norm_c1..
Forward forward(const at::Tensor& qkv, const at::Tensor& q_gain, const at::Tensor& k_gain, std::int64_t heads,
                std::int64_t kv_heads, double eps);

/// Turns dqkv (gradient of forward's qkv) into the gradient of its input, in place; dq_gain, dk_gain [E] +=
/// theirs. `qkv` is the input of forward.
void backward(at::Tensor dqkv, const at::Tensor& qkv, const at::Tensor& q_gain, const at::Tensor& k_gain,
              const at::Tensor& rstd, std::int64_t heads, std::int64_t kv_heads, at::Tensor dq_gain,
              at::Tensor dk_gain);

/// The implementations behind these functions, of the same meaning, arguments unchecked: `cpu` are fused
/// loops for CPU tensors, `cuda` our kernels and vendor libraries for CUDA tensors, `aten` is written in ATen
/// calls and runs on any device.
namespace cpu {
decltype(qk_norm::forward) forward;
decltype(qk_norm::backward) backward;
}  // namespace cpu
namespace cuda {
decltype(qk_norm::forward) forward;
decltype(qk_norm::backward) backward;
}  // namespace cuda
namespace aten {
decltype(qk_norm::forward) forward;
decltype(qk_norm::backward) backward;
}  // namespace aten

}  // namespace assay::impl::qk_norm
