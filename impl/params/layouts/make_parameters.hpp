#pragma once
#include <memory>

#include "impl/params/layouts/layout_groups.hpp"
#include "impl/params/layouts/parameter_layout.hpp"
#include "impl/params/parameter_buffers.hpp"
#include "spec/ops/linear/linear_precision.hpp"

namespace assay::impl {

/// The layout of `groups` over all sets of `buffers`, which were allocated for it; both must outlive it.
/// `wire`: dtype in which gradients are summed over ranks. `linear`: of decoder blocks, whose linears a
/// sharded layout may gather as FP8 codes.
std::unique_ptr<ParameterLayout> make_parameters(const ParameterBuffers& buffers,
                                                 const spec::ModelSpec& model, LayoutGroups& groups,
                                                 at::ScalarType wire,
                                                 const spec::LinearPrecision& linear = {});

}  // namespace assay::impl
