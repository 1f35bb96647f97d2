#pragma once
// Exact matmul FLOPs of a model by component and pass: the numerator of the headline MFU.
// Formula, what is left out, and example: spec/flops/exact.md.
#include <array>
#include <cstdint>
#include <string_view>

#include "spec/count.hpp"
#include "spec/model/model_spec.hpp"

namespace assay::spec {

enum class FlopComponent {
  embedding,
  qkv,
  attention_scores,
  attention_values,
  attention_output,
  gate_up,
  down,
  head,
  latent_projections,  ///< down and up projections of latent attention
  router,
  routed_experts,  ///< the A of X that a token visits: gate, up and down
  shared_experts,
  multi_token_projection  ///< only in multi_token_flops
};
enum class Pass { forward, backward };
constexpr std::size_t flop_components = 13, passes = 2;
std::string_view to_string(FlopComponent component);  ///< "attention_scores"
std::string_view to_string(Pass pass);                ///< "forward"

/// Matmul FLOPs, multiply-adds as 2, of one sequence. [flop]
struct FlopBreakdown {
  std::int64_t sequence_length = 0;  ///< [tokens]
  std::array<std::array<Count, passes>, flop_components> counts;

  const Count& at(FlopComponent component, Pass pass) const {
    return counts[static_cast<std::size_t>(component)][static_cast<std::size_t>(pass)];
  }
  Count of(FlopComponent component) const;  ///< both passes
  Count of(Pass pass) const;                ///< all components
  Count per_sequence() const;
  /// Exact without a window, whose pairs may leave a remainder: then the nearest whole number.
  Count per_token() const;
  Count per_step(std::int64_t sequences) const { return Count(sequences) * per_sequence(); }
};

/// One sequence of `sequence_length` tokens, one document, causal pairs counted once, no recompute.
/// Errors: SpecError model_c1.. as `check`; flops_c1 (sequence_length < 1).
FlopBreakdown exact_flops(const ModelSpec& model, std::int64_t sequence_length);

/// The same sum by the headline formula, 6*P + 3*L*H*(E + W)*(T + 1) per token, with P = matmul parameters
/// and W = E but for latent attention; with a window shorter than T, 2/T times the visible pairs in place of
/// T + 1, rounded as per_token. [flop / token]
Count exact_flops_per_token(const ModelSpec& model, std::int64_t sequence_length);

/// What the multi-token blocks add for one sequence, each with its own use of the shared head; all zero when
/// the model has none. Not part of exact_flops. Errors: as exact_flops.
FlopBreakdown multi_token_flops(const ModelSpec& model, std::int64_t sequence_length);

/// P: parameters that a token meets in a matrix product: all matrices and the head (also when tied), of the
/// routed experts the active ones; not the input embedding, positions, gains and biases. Without the
/// multi-token blocks.
Count matmul_parameters(const ModelSpec& model);

}  // namespace assay::spec
