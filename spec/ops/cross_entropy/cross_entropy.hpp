#pragma once
// Shape rules, FLOPs and bytes of cross_entropy. Equation, source and worked example:
// spec/ops/cross_entropy/cross_entropy.md.
#include <cstdint>
#include <span>

#include "spec/count.hpp"
#include "spec/ops/embedding/vocabulary.hpp"

namespace assay::spec::cross_entropy {

/// Target of a token that takes no part in the loss (the default of PyTorch's cross_entropy).
inline constexpr std::int64_t ignore = -100;

/// What decides the loss beside logits and targets; trainer and kernels pass it on.
struct Terms {
  double z = 0;                                      ///< coefficient of the z-loss
  constexpr Terms(double z_loss = 0) : z(z_loss) {}  // NOLINT: implicit
};

struct Shape {
  std::int64_t N = 0;  ///< rows (B*T)
  std::int64_t V = 0;  ///< entries of a row
};

/// Errors: SpecError cross_entropy_c1 (targets != N), cross_entropy_c2 (a target neither in [0, V) nor -100;
/// names the first one and its place), cross_entropy_c3 (normalizer not > 0 and finite), cross_entropy_c4
/// (terms.z not >= 0 and finite), cross_entropy_c5 (V < 1 or N < 0). A slice may have no columns, and targets
/// may be `foreign`.
void check(const Shape& shape, std::span<const std::int64_t> targets, double normalizer, const Terms& terms,
           Vocabulary columns = Vocabulary::whole);

/// Targets other than -100.
std::int64_t count_valid(std::span<const std::int64_t> targets);

Flops forward_flops(const Shape& shape, std::int64_t valid);   ///< vector: N*(3V + 2) + 4*valid + 4
Flops backward_flops(const Shape& shape, std::int64_t valid);  ///< vector: valid*(3V + 5) + 1

/// Of a rank with V columns of the vocabulary: its part of the sums, those brought to the maximum of all
/// ranks, and the losses of the sums over ranks. The gradient is that of backward.
Flops partial_flops(const Shape& shape);                  ///< vector: 3*N*V
Flops rescale_flops(std::int64_t N);                      ///< vector: 3*N
Flops combine_flops(std::int64_t N, std::int64_t valid);  ///< vector: 2*N + 4*valid + 4

/// Compulsory traffic: every input read once, every output written once. Unit: [B].
/// `element` = bytes of logits and dlogits; `id` = bytes of one target; `statistic` = bytes of one lse.
Count forward_bytes(const Shape& shape, std::int64_t element, std::int64_t id, std::int64_t statistic);
Count backward_bytes(const Shape& shape, std::int64_t element, std::int64_t id, std::int64_t statistic);
Count partial_bytes(const Shape& shape, std::int64_t element, std::int64_t id, std::int64_t statistic);
Count rescale_bytes(std::int64_t N, std::int64_t statistic);
Count combine_bytes(std::int64_t N, std::int64_t id, std::int64_t statistic);

}  // namespace assay::spec::cross_entropy
