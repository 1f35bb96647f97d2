#pragma once
#include <optional>

#include "reference/model/parameters.hpp"
#include "reference/ops/grouped_linear.hpp"
#include "reference/ops/permute.hpp"
#include "reference/ops/router.hpp"
#include "reference/ops/shared_expert.hpp"
#include "reference/tensor.hpp"
#include "spec/model/model_spec.hpp"

namespace assay::reference::experts {

/// Every value of a mixture of experts that its backward pass reads, in the order they are computed.
template <class S>
struct Forward {
  router::Forward<S> router;
  permute::Plan plan;
  Tensor<S> rows;                 ///< [R, D], of the tokens, by expert
  Tensor<S> gate, up, activated;  ///< [R, G]
  Tensor<S> weighted;             ///< [R, G], with a recipe: `activated` times the rows' weights
  Tensor<S> down;                 ///< [R, D], outputs of the experts
  shared_expert::Forward<S> shared;
  Tensor<S> y;  ///< shape of x
};

/// Gradients of auxiliary losses of the router's probabilities and logits [N, X]; without entries where there
/// is no such loss.
template <class S>
struct Upstream {
  Tensor<S> dprobabilities, dlogits;
};

/// The mixture of experts of a sparse block `layer`.                            [spec/model/model.md]
/// Equation:  y = unpermute(down(swiglu(gate, up)), weights) + shared(x), with gate and up the grouped linear
/// of
///            the rows that permute makes of x; choice and weights by router
/// Source:    "Mixtral of Experts", arXiv:2401.04088, section 2; shared experts: arXiv:2401.06066, eq. (9)
/// Shapes:    x [..., D]
/// Errors:    SpecError of the ops
/// With `recipe` the grouped linears are computed in FP8, and it matters where a row's weight is applied: to
/// what the second one reads (spec/ops/router/router.md), so that its upstream is the tokens' own.
using grouped_linear::Recipe;
template <class S>
Forward<S> forward(const Tensor<S>& x, const Parameters<S>& parameters, Index layer,
                   const spec::ModelSpec& model, std::optional<double> capacity_factor = std::nullopt,
                   Recipe recipe = Recipe::none);

/// Gradient of `forward` for upstream dy and those of auxiliary losses: returns dx, and adds the gradient of
/// every parameter that is learned; of an expert without rows it is 0.
template <class S>
Tensor<S> backward(const Tensor<S>& dy, const Upstream<S>& auxiliary, const Forward<S>& saved,
                   const Tensor<S>& x, const Parameters<S>& parameters, Index layer,
                   const spec::ModelSpec& model, Parameters<S>& gradients, Recipe recipe = Recipe::none);

}  // namespace assay::reference::experts
