#pragma once
// Shape rules, FLOPs and bytes of grouped_linear. Equation, source and worked example:
// spec/ops/grouped_linear/grouped_linear.md.
#include <cstdint>
#include <span>

#include "spec/count.hpp"

namespace assay::spec::grouped_linear {

struct Shape {
  std::int64_t R = 0;    ///< rows of all experts
  std::int64_t in = 0;   ///< entries of a row of x
  std::int64_t out = 0;  ///< entries of a row of y
  std::int64_t X = 0;    ///< experts
};

/// Errors: SpecError grouped_linear_c1 (weight's last axis != in), grouped_linear_c2 (in, out or X < 1, or
/// R < 0), grouped_linear_c3 (offsets that are not X + 1, do not start at 0, fall, or do not end at R).
void check(const Shape& shape, std::int64_t weight_in, std::span<const std::int64_t> offsets);
/// Errors: SpecError grouped_linear_c4 (dy does not have R * out entries).
void check_upstream(const Shape& shape, std::int64_t dy_entries);

Flops forward_flops(const Shape& shape);   ///< matmul: 2 R in out
Flops backward_flops(const Shape& shape);  ///< matmul: 4 R in out, half each for dx and dweight

/// Compulsory traffic: every input read once, every output written once. Unit: [B]. `used` = experts that
/// have rows; `element` = bytes of x, weight, y and gradients of x; `gradient` = bytes of dweight.
Count forward_bytes(const Shape& shape, std::int64_t used, std::int64_t element);
Count backward_bytes(const Shape& shape, std::int64_t used, std::int64_t element, std::int64_t gradient);

}  // namespace assay::spec::grouped_linear
