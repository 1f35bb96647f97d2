#pragma once
#include <ATen/core/Tensor.h>

namespace assay::impl::attention {

/// Attention of one token of each text over all that the text holds up to it, itself among them: a row of
/// attention::forward. [spec/ops/attention/attention.md] q [B, H, E] -> [B, 1, H, W] in its type. keys [B, K,
/// S, E], values [B, K, S, W], each head's rows contiguous, in the type of the sums: fp32 for bf16. positions
/// [B] int64: of the token, below S. `window` as in Mask; `scale`: of the scores.
at::Tensor of_newest(const at::Tensor& q, const at::Tensor& keys, const at::Tensor& values,
                     const at::Tensor& positions, std::int64_t window, double scale);

}  // namespace assay::impl::attention
