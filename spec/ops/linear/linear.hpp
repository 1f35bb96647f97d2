#pragma once
// Shape rules, FLOPs and bytes of linear. Equation, source and worked example: spec/ops/linear/linear.md.
#include <cstdint>

#include "spec/count.hpp"

namespace assay::spec::linear {

struct Shape {
  std::int64_t N = 0;    ///< rows (B*T)
  std::int64_t in = 0;   ///< entries of a row of x
  std::int64_t out = 0;  ///< entries of a row of y
};

/// Errors: SpecError linear_c1 (weight's second axis != in), linear_c2 (in < 1, out < 1 or N < 0).
void check(const Shape& shape, std::int64_t weight_in);
/// Errors: SpecError linear_c3 (dy does not have N * out entries).
void check_upstream(const Shape& shape, std::int64_t dy_entries);

Flops forward_flops(const Shape& shape);   ///< matmul: 2*N*in*out
Flops backward_flops(const Shape& shape);  ///< matmul: 4*N*in*out, half each for dx and dweight

/// Compulsory traffic: every input read once, every output written once. Unit: [B].
/// `element` = bytes of x, weight, y and gradients of x; `gradient` = bytes of dweight.
Count forward_bytes(const Shape& shape, std::int64_t element);
Count backward_bytes(const Shape& shape, std::int64_t element, std::int64_t gradient);

}  // namespace assay::spec::linear
