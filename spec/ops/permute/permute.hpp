#pragma once
// Shape rules, capacity, FLOPs and bytes of permute and unpermute. Equations, order of rows, source and
// worked example: spec/ops/permute/permute.md.
#include <cstdint>
#include <optional>
#include <span>

#include "spec/count.hpp"

namespace assay::spec::permute {

struct Shape {
  std::int64_t N = 0;  ///< rows of tokens (B*T)
  std::int64_t A = 0;  ///< experts of a token
  std::int64_t X = 0;  ///< experts
};

/// Rows that an expert takes at most of a group of N tokens: ceil(factor * N A / X), computed in double from
/// the left, and not above N. Errors: SpecError permute_c1, permute_c3 (factor not finite and > 0).
std::int64_t capacity(const Shape& shape, double factor);

/// Errors: SpecError permute_c1 (N < 0, A < 1 or A > X), permute_c2 (not N A experts, or one outside [0, X)),
/// permute_c3 (factor).
void check(const Shape& shape, std::span<const std::int64_t> chosen, std::optional<double> capacity_factor);
/// Errors: SpecError permute_c5 (groups < 1, or that do not divide N).
void check_groups(std::int64_t N, std::int64_t groups);
/// Errors: SpecError permute_c1 (D < 1), permute_c4 (another number of entries than is due).
void check_entries(const char* what, std::int64_t entries, std::int64_t due, std::int64_t D);

/// R = rows that are kept; drop-less N A.
Flops backward_flops(std::int64_t R, std::int64_t D);           ///< of permute, vector: R D; forward has none
Flops unpermute_forward_flops(std::int64_t R, std::int64_t D);  ///< vector: 2 R D
Flops unpermute_backward_flops(std::int64_t R, std::int64_t D);  ///< vector: 3 R D

/// Compulsory traffic without the plan's integers. Unit: [B]. `element` = bytes of an entry of a row,
/// `statistic` = of a weight and its gradient. permute's backward moves what its forward does.
Count forward_bytes(std::int64_t N, std::int64_t R, std::int64_t D, std::int64_t element);
Count unpermute_forward_bytes(const Shape& shape, std::int64_t R, std::int64_t D, std::int64_t element,
                              std::int64_t statistic);
Count unpermute_backward_bytes(const Shape& shape, std::int64_t R, std::int64_t D, std::int64_t element,
                               std::int64_t statistic);

}  // namespace assay::spec::permute
