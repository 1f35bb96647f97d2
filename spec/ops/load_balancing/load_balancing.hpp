#pragma once
// Rules, FLOPs and bytes of load_balancing, and the bias that moves without a gradient. Equations, which
// tokens count, source and worked example: spec/ops/load_balancing/load_balancing.md.
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "spec/count.hpp"

namespace assay::spec::load_balancing {

/// Over which tokens and layers the shares f of experts are taken.
enum class Form { global, running, sequence, micro_batch, hugging_face };
std::string_view to_string(Form form);  ///< "global"

/// What a step sums for each router in front of the loads of its experts: balance loss, z-loss, entropy, and
/// choices that were dropped.
inline constexpr std::int64_t numbers_before_loads = 4;

struct Shape {
  std::int64_t N = 0;  ///< rows (B*T)
  std::int64_t X = 0;  ///< experts
  std::int64_t G = 1;  ///< groups of consecutive rows, each with shares of its own
};

/// Errors: SpecError load_balancing_c1 (N < 0, X < 1, G < 1 or G does not divide N), load_balancing_c2
/// (shares that are not G X, or one that is negative, above `active` or not finite), load_balancing_c3
/// (normalizer).
void check(const Shape& shape, std::int64_t active, std::span<const double> shares, double normalizer);
/// Errors: SpecError load_balancing_c1, load_balancing_c3.
void check_z(std::int64_t N, std::int64_t X, double normalizer);

/// How often each expert was chosen. `chosen` [N, A] in [0, X).
std::vector<std::int64_t> counts(std::span<const std::int64_t> chosen, std::int64_t X);

/// b_e += rate * sign(mean count - count_e), once per optimizer step, with the counts of the whole step.
/// Errors: SpecError load_balancing_c4 (other numbers of entries, a negative count, a rate that is negative
/// or not finite).
void move_bias(std::span<double> bias, std::span<const std::int64_t> counts, double rate);

/// Load of the expert that most choices fell on, over the mean load: 1 when all are used alike, X when one
/// alone is; 0 without choices. No choice is dropped: each of the N A is a load.
double largest_load(std::span<const double> counts);

Flops shares_flops(const Shape& shape);                  ///< vector: G X
Flops forward_flops(const Shape& shape);                 ///< vector: 2 N X + 2
Flops backward_flops(const Shape& shape);                ///< vector: G X + 2
Flops z_forward_flops(std::int64_t N, std::int64_t X);   ///< vector: N (3 X + 4) + 1
Flops z_backward_flops(std::int64_t N, std::int64_t X);  ///< vector: N (3 X + 1) + 2

Flops entropy_flops(std::int64_t N, std::int64_t X);  ///< vector: N (3 X)

/// Compulsory traffic. Unit: [B]. `statistic` = bytes of probabilities, logits, shares and lse.
Count forward_bytes(const Shape& shape, std::int64_t statistic);
Count backward_bytes(const Shape& shape, std::int64_t statistic);
Count z_forward_bytes(std::int64_t N, std::int64_t X, std::int64_t statistic);
Count z_backward_bytes(std::int64_t N, std::int64_t X, std::int64_t statistic);

}  // namespace assay::spec::load_balancing
