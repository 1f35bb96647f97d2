#pragma once
// The maximum over ranks by integers: engines define no maximum of NaN, neither Gloo's nor ncclMax does.
#include <ATen/core/Tensor.h>

namespace assay::impl {

/// Integers in the order of the numbers of `tensor`: of two, the larger number has the larger key, +0 is
/// above -0, and NaN is above every number. int64 for fp64, int32 for fp32 and bf16; an int64 tensor is its
/// own keys, without a copy. Errors: std::invalid_argument for another dtype.
at::Tensor max_keys(const at::Tensor& tensor);

/// tensor = the numbers of `keys`, which max_keys gave for tensors of its dtype.
void write_numbers(const at::Tensor& keys, const at::Tensor& tensor);

}  // namespace assay::impl
