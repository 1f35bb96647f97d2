#pragma once
// Shape rules, FLOPs and bytes of router. Equation, source, tie rule and worked example:
// spec/ops/router/router.md.
#include <cstdint>

#include "spec/count.hpp"
#include "spec/model/model_spec.hpp"

namespace assay::spec::router {

/// Added to the sum by which weights, and probabilities of sigmoids, are divided.
inline constexpr double tiny = 1e-20;

struct Shape {
  std::int64_t N = 0;  ///< rows (B*T)
  std::int64_t D = 0;  ///< entries of a row
};

/// Auxiliary losses that send a gradient into backward: to probabilities, to logits.
struct Auxiliary {
  bool probabilities = false;
  bool logits = false;
  bool of_batch = false;  ///< shares of the balance loss are those of the batch so far, not of each sequence
};

/// Errors: SpecError router_c1 (weight not [X, D]), router_c2 (N < 0, D < 1, or experts that are impossible),
/// router_c3 (bias entries that are not X with router_bias, 0 without).
void check(const Shape& shape, const Experts& experts, std::int64_t weight_rows, std::int64_t weight_entries,
           std::int64_t bias_entries);
/// Errors: SpecError router_c4 (dweight not N A, dp or dl not N X or 0 entries).
void check_upstream(const Shape& shape, const Experts& experts, std::int64_t dweight_entries,
                    std::int64_t dp_entries, std::int64_t dl_entries);

Flops forward_flops(const Shape& shape, const Experts& experts);  ///< matmul 2 N X D, vector as router.md
Flops probabilities_flops(std::int64_t N,
                          const Experts& experts);  ///< vector: N (2 X + 1) of sigmoids, else 0
Flops backward_flops(const Shape& shape, const Experts& experts, Auxiliary auxiliary);  ///< matmul 4 N X D

/// Compulsory traffic: every input read once, every output written once. Unit: [B].
/// `element` = bytes of x, dx and weight; `statistic` = of logits, weights, bias and gradients of them, `id`
/// = of a chosen expert, `gradient` = of dweight of the matrix.
Count forward_bytes(const Shape& shape, const Experts& experts, std::int64_t element, std::int64_t statistic,
                    std::int64_t id);
Count backward_bytes(const Shape& shape, const Experts& experts, Auxiliary auxiliary, std::int64_t element,
                     std::int64_t statistic, std::int64_t id, std::int64_t gradient);

}  // namespace assay::spec::router
