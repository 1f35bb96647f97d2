#pragma once
#include <ATen/core/Tensor.h>

#include "spec/model/inventory.hpp"

namespace assay::impl::init {

/// Writes the initial values of parameter number `index` of the inventory into `values` (flat, of
/// parameter.size). A pure function of (seed, index, element): the same bits on every layout and number of
/// ranks. Values are computed in double and rounded once to the dtype of `values`. [spec/ops/init.md] Errors:
/// SpecError init_c1 .. init_c5
void fill(at::Tensor values, const spec::Parameter& parameter, std::int64_t index,
          const spec::ModelSpec& model, std::uint64_t seed);

}  // namespace assay::impl::init
