#pragma once
// Shape rules, FLOPs and bytes of bias. Equation, source and worked example: spec/ops/bias/bias.md.
#include <algorithm>
#include <cstdint>

#include "spec/count.hpp"

namespace assay::spec::bias {

/// On a GPU, GEMMs of fewer FLOPs have the bias in every row as a residual instead of in the write-back: the
/// library's algorithms for small results round the product to bf16 before they add the bias.
inline constexpr double least_fused_flops = 2e10;

struct Shape {
  std::int64_t N = 0;    ///< rows (B*T)
  std::int64_t out = 0;  ///< entries of a row
};

/// Errors: SpecError bias_c1 (bias has not `out` entries), bias_c2 (out < 1 or N < 0).
void check(const Shape& shape, std::int64_t bias_entries);

Flops forward_flops(const Shape& shape);   ///< vector: N*out
Flops backward_flops(const Shape& shape);  ///< vector: N*out

/// Traffic beside that of the GEMM. `element` = bytes of bias and dy, `gradient` = bytes of the bias's
/// gradient, which is read and written. Unit: [B].
Count forward_bytes(const Shape& shape, std::int64_t element);
Count backward_bytes(const Shape& shape, std::int64_t element, std::int64_t gradient);

/// Rows of partial sums that the GPU's backward adds up last: fixed by N, not by the device, so that the
/// order of the sum is the same everywhere.
inline std::int64_t partial_rows(std::int64_t N) { return std::clamp<std::int64_t>(N, 1, 264); }

}  // namespace assay::spec::bias
