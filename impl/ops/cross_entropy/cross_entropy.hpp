#pragma once
#include <ATen/core/Tensor.h>

#include "impl/ops/normalizer.hpp"

namespace assay::impl::cross_entropy {

struct Forward {
  at::Tensor loss;  ///< fp64 scalar: sum over valid tokens of (lse - logit of the target) / normalizer  [nat]
  at::Tensor z_loss;  ///< fp64 scalar: z * sum over valid tokens of lse^2 / normalizer
  at::Tensor lse;     ///< [N], fp32 for bf16, else dtype of logits
};

/// Cross-entropy of targets under softmax(logits), and its z-loss. [spec/ops/cross_entropy.md] Shapes: logits
/// [N, V], each row contiguous, rows V or more apart; targets [N] int64; target -100 is ignored. Sums in
/// fp64, in a fixed order. Errors: SpecError cross_entropy_c1.. (target outside the vocabulary (CPU),
/// normalizer not > 0 where it is known, z not >= 0).
Forward forward(const at::Tensor& logits, const at::Tensor& targets, const Normalizer& normalizer, double z);

/// Gradient of loss + z_loss, written over logits and returned.
at::Tensor backward(at::Tensor logits, const at::Tensor& targets, const at::Tensor& lse,
                    const Normalizer& normalizer, double z);

/// Both: what forward gives, and the gradient written over logits, with the bits of the two. On a GPU rows
/// are read from memory once where its cache holds them.
Forward forward_backward(at::Tensor logits, const at::Tensor& targets, const Normalizer& normalizer,
                         double z);

/// The implementations behind these functions, of the same meaning, arguments unchecked: `cpu` are fused
/// loops for CPU tensors, `cuda` our kernels and vendor libraries for CUDA tensors, `aten` is written in ATen
/// calls and runs on any device.
namespace cpu {
decltype(cross_entropy::forward) forward;
decltype(cross_entropy::backward) backward;
}  // namespace cpu
namespace cuda {
decltype(cross_entropy::forward) forward;
decltype(cross_entropy::backward) backward;
decltype(cross_entropy::forward_backward) forward_backward;
}  // namespace cuda
namespace aten {
decltype(cross_entropy::forward) forward;
decltype(cross_entropy::backward) backward;
}  // namespace aten

}  // namespace assay::impl::cross_entropy
