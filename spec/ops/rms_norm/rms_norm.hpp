#pragma once
// Shape rules, FLOPs and bytes of rms_norm. Equation, source and worked example:
// spec/ops/rms_norm/rms_norm.md.
#include <cstdint>

#include "spec/count.hpp"

namespace assay::spec::rms_norm {

struct Shape {
  std::int64_t N = 0;  ///< rows normalised (B*T, or B*T*heads)
  std::int64_t D = 0;  ///< entries of a row
};

/// Errors: SpecError rms_norm_c1 (gain entries != D), rms_norm_c2 (eps not > 0 and finite), rms_norm_c3 (D <
/// 1 or N < 0).
void check(const Shape& shape, std::int64_t gain_entries, double eps);

Flops forward_flops(const Shape& shape);   ///< vector: N*(4D + 4)
Flops backward_flops(const Shape& shape);  ///< vector: N*(11D + 1)

/// Compulsory traffic: every input read once, every output written once. Unit: [B].
/// `element` = bytes of x, y and gradients of x; `statistic` = bytes of rstd, the gain and its gradient.
Count forward_bytes(const Shape& shape, std::int64_t element, std::int64_t statistic);
Count backward_bytes(const Shape& shape, std::int64_t element, std::int64_t statistic);

/// What `x += residual` in the same pass adds to forward: N*D additions; the residual read, the sum written.
Flops sum_flops(const Shape& shape);
Count sum_bytes(const Shape& shape, std::int64_t element);

}  // namespace assay::spec::rms_norm
