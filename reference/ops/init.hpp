#pragma once
#include "reference/tensor.hpp"
#include "spec/model/inventory.hpp"

namespace assay::reference::init {

/// Initial values of parameter number `index` of a model's inventory.           [spec/ops/init/init.md]
/// Equation:  norms 1; attention output and down N(0, std^2 / 2L); all others N(0, std^2); std =
/// model.init_std Source:    Radford et al., GPT-2, 2019, section 2.3; numbers of the stream (seed,
/// parameter, index) Shapes:    -> parameter.shape Errors:    SpecError init_c1 .. init_c4
Tensor<double> values(const spec::Parameter& parameter, Index index, const spec::ModelSpec& model,
                      std::uint64_t seed);

}  // namespace assay::reference::init
