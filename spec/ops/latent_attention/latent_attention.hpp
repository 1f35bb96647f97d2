#pragma once
// Shape rules, FLOPs and bytes of latent_attention. Equation, source and worked example:
// spec/ops/latent_attention/latent_attention.md.
#include <cstdint>
#include <optional>
#include <vector>

#include "spec/count.hpp"
#include "spec/model/model_spec.hpp"
#include "spec/ops/attention/attention.hpp"

namespace assay::spec::latent_attention {

struct Shape {
  std::int64_t B = 0;    ///< sequences
  std::int64_t T = 0;    ///< tokens of a sequence
  std::int64_t D = 0;    ///< entries of a token of x
  std::int64_t H = 0;    ///< heads
  std::int64_t Cq = 0;   ///< entries of a compressed query; 0: queries come straight from x
  std::int64_t Ckv = 0;  ///< entries of compressed keys and values
  std::int64_t E = 0;    ///< entries of a query and key head
  std::int64_t R = 0;    ///< turned entries of those, the last ones
  std::int64_t W = 0;    ///< entries of a value head
};

/// Of a model that has latent attention.
Shape shape_of(const ModelSpec& model, std::int64_t B, std::int64_t T);
/// Of its softmax attention: as many key/value heads as query heads.
attention::Shape attention_of(const Shape& shape);

/// Errors: SpecError latent_attention_c2 (an extent that is not possible), latent_attention_c3 (R odd or not
/// in [2, E)), latent_attention_c4 (eps not > 0 and finite).
void check(const Shape& shape, double eps);
/// `extents` of the tensor called `name` against the expected ones. Errors: SpecError latent_attention_c1.
void check_extents(const char* name, const std::vector<std::int64_t>& extents,
                   const std::vector<std::int64_t>& expected);

/// Factor m of the scores beside 1/sqrt(E): the square of yarn's scale by mscale_all_dim, else 1.
double score_factor(const std::optional<RopeScaling>& scaling);

/// Of the step `expand`: q, k and v of every head from the up projections and the shared key.
Flops expand_forward_flops(const Shape& shape);   ///< vector: 3*B*T*(H + 1)*R
Flops expand_backward_flops(const Shape& shape);  ///< vector: 3*B*T*(H + 1)*R + B*T*H*R
/// Compulsory traffic of `expand`, which leaves q, k and v side by side. Unit: [B]. `element` = bytes of q,
/// k, v and their gradients; `table` = bytes of one cosine or sine.
Count expand_forward_bytes(const Shape& shape, std::int64_t element, std::int64_t table);
Count expand_backward_bytes(const Shape& shape, std::int64_t element, std::int64_t table);

/// Traffic of taking the two parts of key-value down apart, and of joining their gradients. Unit: [B].
Count split_bytes(const Shape& shape, std::int64_t element);

/// FLOPs of the model, for MFU: the sums over all steps of the page.
Flops forward_flops(const Shape& shape, const attention::Mask& mask);
Flops backward_flops(const Shape& shape, const attention::Mask& mask);
/// What backward executes beyond backward_flops when q, k and v were not kept: their projections and
/// `expand`.
Flops up_flops(const Shape& shape);

/// Bytes of q, k and v, which recompute by `up_flops` need not keep. Unit: [B].
Count expanded_bytes(const Shape& shape, std::int64_t element);
/// Bytes of what they are made from: the compressed, normed values and the shared key; x, which the norm
/// before it keeps, not among them. Unit: [B].
Count compressed_bytes(const Shape& shape, std::int64_t element);

}  // namespace assay::spec::latent_attention
