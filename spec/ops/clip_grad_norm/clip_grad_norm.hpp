#pragma once
// Coefficient, FLOPs and bytes of clip_grad_norm. Equation, source and worked example:
// spec/ops/clip_grad_norm/clip_grad_norm.md.
#include <cstdint>
#include <string>

#include "spec/count.hpp"

namespace assay::spec::clip_grad_norm {

/// `sum_of_squares` of the gradients up to and including the one called `tensor`.
/// Errors: SpecError clip_grad_norm_c2 (not finite: the tensor, or the sum with it, has no finite norm).
void check_finite(double sum_of_squares, const std::string& tensor);

/// min(1, max_norm / (norm + 1e-6)).
/// Errors: SpecError clip_grad_norm_c1 (max_norm not > 0 and finite), clip_grad_norm_c2 (norm not finite).
double coefficient(double norm, double max_norm);

Flops clip_flops(std::int64_t entries);  ///< vector: 3 * entries + 1

/// Compulsory traffic, `gradient` = bytes of an entry. Unit: [B].
Count norm_bytes(std::int64_t entries, std::int64_t gradient);   ///< reads every gradient
Count scale_bytes(std::int64_t entries, std::int64_t gradient);  ///< reads and writes every gradient

}  // namespace assay::spec::clip_grad_norm
