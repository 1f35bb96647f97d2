#pragma once
#include <ATen/core/Tensor.h>

namespace assay::impl {

/// Ids or targets of the whole vocabulary as those of the slice [first, first + count) of one tensor rank:
/// own
/// -> id - first; others -> spec::foreign; spec::cross_entropy::ignore stays. int64, any shape, any device.
at::Tensor own_ids(const at::Tensor& ids, std::int64_t first, std::int64_t count);

}  // namespace assay::impl
