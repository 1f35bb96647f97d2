#pragma once
#include <memory>

#include "impl/params/layouts/layout_groups.hpp"
#include "impl/params/layouts/parameter_layout.hpp"
#include "impl/params/parameter_buffers.hpp"

namespace assay::impl {

/// The layout of `groups` over `buffers`, which were allocated for it; both must outlive it. `wire`: dtype in
/// which gradients are summed over ranks.
std::unique_ptr<ParameterLayout> make_parameters(const ParameterBuffers& buffers,
                                                 const spec::ModelSpec& model, LayoutGroups& groups,
                                                 at::ScalarType wire);

}  // namespace assay::impl
