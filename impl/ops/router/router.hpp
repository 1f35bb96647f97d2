#pragma once
#include <ATen/core/Tensor.h>

#include "spec/model/model_spec.hpp"

namespace assay::impl::router {

/// Which experts a token visits, and how much each counts. N tokens, X experts, A of them a token.
struct Choice {
  at::Tensor scores;   ///< [N, X] softmax or sigmoid of the logits, fp32 or fp64
  at::Tensor experts;  ///< [N, A] int32, best first; of equal scores the lower expert
  at::Tensor weights;  ///< [N, A] type of scores
};

/// logits [N, X] fp32 or fp64, which become the scores.                              [spec/ops/router.md]
/// Errors: SpecError router_c1.. as spec::router::check.
Choice forward(at::Tensor logits, const spec::Experts& how);

/// The gradient of the logits, rounded once to `type`. dweights [N, A], type of scores.
at::Tensor backward(const at::Tensor& dweights, const Choice& choice, const spec::Experts& how,
                    at::ScalarType type);

namespace cpu {
decltype(router::forward) forward;
decltype(router::backward) backward;
}  // namespace cpu
namespace cuda {
decltype(router::forward) forward;
decltype(router::backward) backward;
}  // namespace cuda

}  // namespace assay::impl::router
