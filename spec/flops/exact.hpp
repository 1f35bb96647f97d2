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
  head
};
enum class Pass { forward, backward };
constexpr std::size_t flop_components = 8, passes = 2;
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
  Count per_token() const;  ///< exact: every count is a multiple of the sequence length
  Count per_step(std::int64_t sequences) const { return Count(sequences) * per_sequence(); }
};

/// One sequence of `sequence_length` tokens, one document, causal pairs counted once, no recompute.
/// Errors: SpecError model_c1.. as `check`; flops_c1 (sequence_length < 1).
FlopBreakdown exact_flops(const ModelSpec& model, std::int64_t sequence_length);

/// The same sum by the headline formula, 6*P + 6*L*(H*E)*(T + 1) per token, with P = matmul parameters. [flop
/// / token]
Count exact_flops_per_token(const ModelSpec& model, std::int64_t sequence_length);

/// P: parameters that take part in a matrix product: all matrices and the head (also when tied), not the
/// input embedding, not the gains.
Count matmul_parameters(const ModelSpec& model);

}  // namespace assay::spec
