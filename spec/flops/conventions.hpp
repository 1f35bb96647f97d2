#pragma once
// How trainers count the FLOPs of a token: every convention by name, with its formula, its source, and what
// it counts differently from `exact`. Formulas and worked examples: spec/flops/conventions.md.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "spec/count.hpp"
#include "spec/model/model_spec.hpp"

namespace assay::spec {

enum class Convention {
  exact,
  palm_total,
  palm_nonembedding,
  six_n,               ///< "6n"
  six_n_nonembedding,  ///< "6n_nonembedding"
  nanogpt_legacy_v1,
  combined_formula_v2,
  component_summation_v2025,
  megatron,
  torchtitan,
  kempnerforge,
  kempnerforge_published,
  llmc,
  llmq,
  nanochat,
  surogate,
  nanotron
};

/// What a convention is, in texts short enough for a table. Letters: spec/notation.md; N all parameters that
/// a token meets (dense: all), P those in matrix products, m and n as in conventions.md. "all pairs": also
/// those that the causal mask removes. "E=D/H": heads taken as that wide.
struct ConventionFacts {
  Convention convention;
  std::string_view name;     ///< "torchtitan"
  std::string_view formula;  ///< FLOPs per token, forward and backward
  std::string_view source;   ///< repository, file and commit, or paper
  std::string_view differs;  ///< from `exact`, in a few words
  bool attention = true;     ///< it counts attention
};

/// All, `exact` first.
const std::vector<ConventionFacts>& conventions();
const ConventionFacts& facts_of(Convention convention);
std::string_view to_string(Convention convention);                 ///< its name
std::optional<Convention> convention_from(std::string_view name);  ///< nothing for other words

/// Its formula for a model whose window is shorter than a sequence of T, or for any other. Letters as above;
/// w the window.
std::string formula_of(Convention convention, const ModelSpec& model, std::int64_t sequence_length);

/// Whether it counts pairs outside the model's window: all that count attention do, but for `exact`.
bool counts_outside_window(Convention convention, const ModelSpec& model, std::int64_t sequence_length);

/// FLOPs that a convention gives one token of a sequence of T, or why it gives none.
struct ConventionCount {
  std::optional<Count> flops;  ///< [flop / token]
  std::string why_not;         ///< set when there is no count: "does not apply: ..."
};

/// Errors: SpecError model_c1.. as `check`; flops_c1 (sequence_length < 1). A model that the convention's own
/// project could not count is no error: then the result says why not.
ConventionCount flops_per_token(Convention convention, const ModelSpec& model, std::int64_t sequence_length);

/// 6 N + 12 L H Q T from numbers that a log prints, without a model. Errors: SpecError flops_c1 (any below
/// 1).
Count palm_flops_per_token(std::int64_t parameters, std::int64_t layers, std::int64_t heads,
                           std::int64_t head_dim, std::int64_t sequence_length);

}  // namespace assay::spec
