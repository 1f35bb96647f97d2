#pragma once
#include <ATen/core/Tensor.h>

#include "impl/ops/normalizer.hpp"
#include "spec/ops/cross_entropy/cross_entropy.hpp"

namespace assay::impl::cross_entropy {

using spec::cross_entropy::Terms;

struct Forward {
  at::Tensor loss;  ///< fp64 scalar: sum over valid tokens of (lse - logit of the target) / normalizer  [nat]
  at::Tensor z_loss;  ///< fp64 scalar: terms.z * sum over valid tokens of lse^2 / normalizer
  at::Tensor lse;     ///< [N], fp32 for bf16, else dtype of logits
};

/// Cross-entropy of targets under softmax(logits), and its z-loss. [spec/ops/cross_entropy/cross_entropy.md]
/// Shapes: logits [N, V], each row contiguous, rows V or more apart; targets [N] int64; target -100 is
/// ignored. Sums in fp64, in a fixed order. Errors: SpecError cross_entropy_c1.. (target outside the
/// vocabulary (CPU), normalizer not > 0 where it is known, terms.z not >= 0).
Forward forward(const at::Tensor& logits, const at::Tensor& targets, const Normalizer& normalizer,
                const Terms& terms);

/// Gradient of loss + z_loss, written over logits and returned. The logits may be a slice of the vocabulary,
/// with own targets as for `partial` and the lse of all its columns.
at::Tensor backward(at::Tensor logits, const at::Tensor& targets, const at::Tensor& lse,
                    const Normalizer& normalizer, const Terms& terms);

/// Both: what forward gives, and the gradient written over logits, with the bits of the two. On a GPU rows
/// are read from memory once where its cache holds them.
Forward forward_backward(at::Tensor logits, const at::Tensor& targets, const Normalizer& normalizer,
                         const Terms& terms);

/// What one tensor rank adds to the sums of a vocabulary whose columns the ranks share. [N] each; fp32 for
/// bf16, else dtype of logits.
struct Partial {
  at::Tensor top;        ///< largest own logit; -infinity without own columns
  at::Tensor sum;        ///< sum of exp(logit - top) over own columns
  at::Tensor of_target;  ///< logit of the target where it is own, else 0
  at::Tensor sums;       ///< [2, N]: sum and of_target are its rows, so that one all-reduce adds both
};

/// Of the own columns: logits [N, V_own], rows as for `forward`, V_own >= 0; targets as `own_ids` gives them.
/// All ranks together then compute `forward` of the whole vocabulary:
///   partial -> all-reduce of top (maximum) -> rescale -> all-reduce of sums (sum) -> combine
Partial partial(const at::Tensor& logits, const at::Tensor& own_targets, const Terms& terms = {});

/// Own sums relative to `top`, the maximum over ranks, in place: top <- `top`.
void rescale(Partial& own, const at::Tensor& top);

/// Losses and lse of the whole vocabulary from the maximum and sums over ranks. Of `targets` only the ignored
/// ones matter. Sums in fp64, in a fixed order.
Forward combine(const Partial& all, const at::Tensor& targets, const Normalizer& normalizer,
                const Terms& terms);

/// Loss of each row [N] fp64, before the normalizer: lse - logit of the target, 0 where that is ignored. lse
/// and of_target [N], targets [N].
at::Tensor row_losses(const at::Tensor& lse, const at::Tensor& of_target, const at::Tensor& targets);

/// The implementations behind these functions, of the same meaning, arguments unchecked: `cpu` are fused
/// loops for CPU tensors, `cuda` our kernels and vendor libraries for CUDA tensors, `aten` is written in ATen
/// calls and runs on any device.
namespace cpu {
decltype(cross_entropy::forward) forward;
decltype(cross_entropy::backward) backward;
decltype(cross_entropy::partial) partial;
decltype(cross_entropy::combine) combine;
}  // namespace cpu
namespace cuda {
decltype(cross_entropy::forward) forward;
decltype(cross_entropy::backward) backward;
decltype(cross_entropy::partial) partial;
decltype(cross_entropy::combine) combine;
decltype(cross_entropy::forward_backward) forward_backward;
}  // namespace cuda
namespace aten {
decltype(cross_entropy::forward) forward;
decltype(cross_entropy::backward) backward;
decltype(cross_entropy::partial) partial;
decltype(cross_entropy::combine) combine;
}  // namespace aten

}  // namespace assay::impl::cross_entropy
