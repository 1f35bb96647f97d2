#pragma once
#include "reference/tensor.hpp"
#include "spec/ops/adamw/adamw.hpp"

namespace assay::reference::adamw {

/// One AdamW update of one parameter tensor, in place.                          [spec/ops/adamw/adamw.md]
/// Equation:  theta <- theta (1 - eta lambda),  m <- m + (1 - beta1)(g - m),  v <- beta2 v + (1 - beta2) g^2,
///            theta <- theta - eta/(1 - beta1^t) * m / (sqrt(v)/sqrt(1 - beta2^t) + eps)
/// Source:    Loshchilov, Hutter, "Decoupled Weight Decay Regularization", ICLR 2019, algorithm 2; PyTorch's
/// order Shapes:    parameter, gradient, moment1, moment2: any, with the same number of entries; moments zero
/// before step 1 Errors:    SpecError adamw_c1 .. adamw_c6, before anything is changed
template <class S>
void update(Tensor<S>& parameter, const Tensor<S>& gradient, Tensor<S>& moment1, Tensor<S>& moment2,
            const spec::adamw::Settings& settings);

/// The same with parameter and moments kept in bf16: each result is rounded stochastically, with the bits of
/// entries first, first + 1, ... of the flat parameter buffer.                   [spec/ops/adamw/adamw.md,
/// states in bf16] Errors:    as update, and SpecError adamw_c7
void update_bf16(Tensor<double>& parameter, const Tensor<double>& gradient, Tensor<double>& moment1,
                 Tensor<double>& moment2, const spec::adamw::Settings& settings, std::uint64_t seed,
                 std::uint64_t first);

}  // namespace assay::reference::adamw
