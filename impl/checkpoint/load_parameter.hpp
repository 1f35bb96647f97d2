#pragma once
// What of a parameter a rank reads from a file, of whatever origin.
#include <ATen/core/Tensor.h>

#include <vector>

#include "impl/params/parameter_buffers.hpp"

namespace assay::impl::checkpoint {

/// Elements of parameter number `index` of the model among which are all that this rank holds in one of
/// `targets`: of a parameter that is split over tensor ranks its rows, or everything where columns are split;
/// else all of them, its shard, or none.
spec::Inventory::Range held(const ParameterBuffers& buffers, const std::vector<at::Tensor>& targets,
                            std::size_t index);

}  // namespace assay::impl::checkpoint
