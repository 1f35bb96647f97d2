#pragma once
#include <ATen/core/Tensor.h>

namespace assay::impl::attention {

struct Forward {
  at::Tensor y;    ///< [B, T, H, E] contiguous
  at::Tensor lse;  ///< [B, H, T] log of the sum of exponentials of each row, fp32 for bf16, else dtype of qkv
};

/// Causal grouped-query attention with an optional document mask.                     [spec/ops/attention.md]
/// Token t sees token s iff s <= t and both are of the same document; scale 1/sqrt(E).
/// Shapes: qkv [B, T, H + 2K, E] contiguous, heads ordered q | k | v (query head h reads key/value head h /
/// (H/K)); documents [B, T] int32, nondecreasing along T, or undefined (one document per sequence). Errors:
/// SpecError attention_c1..
Forward forward(const at::Tensor& qkv, std::int64_t heads, std::int64_t kv_heads,
                const at::Tensor& documents);

/// Gradient of forward with the probabilities recomputed from lse. dy [B, T, H, E] -> dqkv [B, T, H + 2K, E].
at::Tensor backward(const at::Tensor& dy, const at::Tensor& qkv, const Forward& saved, std::int64_t heads,
                    std::int64_t kv_heads, const at::Tensor& documents);

/// The two implementations behind these functions, of the same meaning, arguments unchecked: `cpu` are fused
/// loops for CPU tensors, `aten` is written in ATen calls and runs on any device.
namespace cpu {
decltype(attention::forward) forward;
decltype(attention::backward) backward;
}  // namespace cpu
namespace aten {
decltype(attention::forward) forward;
decltype(attention::backward) backward;
}  // namespace aten

}  // namespace assay::impl::attention
