#pragma once
#include <c10/core/ScalarType.h>

namespace assay::impl {

/// Type of statistics, sums, gradients and gains kept beside tensors of `type`: fp32 for bf16, else the same.
inline at::ScalarType math_type(at::ScalarType type) { return type == at::kBFloat16 ? at::kFloat : type; }

}  // namespace assay::impl
