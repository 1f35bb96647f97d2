#pragma once
#include "impl/params/parameter_buffers.hpp"

namespace assay::impl {

/// What a tensor rank holds of a parameter of the model, without the rows that pad it: `values` in the shape
/// of the whole.
at::Tensor own_slice(const spec::Placement& placement, const at::Tensor& values);
/// Copies the values of parameter number `index` of `buffers`, in the shape of the whole model's, to where
/// the buffer holds them: this tensor rank's slice of them, of which all, this rank's shard, or nothing.
void store(const ParameterBuffers& buffers, const at::Tensor& buffer, std::size_t index,
           const at::Tensor& values);

}  // namespace assay::impl
