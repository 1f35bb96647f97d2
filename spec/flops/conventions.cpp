#include "spec/flops/conventions.hpp"

#include <initializer_list>
#include <utility>

#include "spec/error.hpp"
#include "spec/flops/exact.hpp"

namespace assay::spec {
namespace {

constexpr std::int64_t padding = 128;  ///< vocabularies are padded to a multiple of it by Megatron and llm.c

/// The letters of the formulas. N and P: what a token meets, so of the experts the active ones.
struct Letters {
  Letters(const ModelSpec& model, std::int64_t sequence_length)
      : m(model),
        L(model.layers),
        D(model.width),
        H(model.heads),
        K(model.kv_heads),
        E(model.head_dim),
        W(model.value_dim()),
        F(model.ffn),
        V(model.vocab),
        T(sequence_length),
        sparse(model.sparse_layers()),
        counts(parameter_counts(model)),
        N(counts.active),
        P(matmul_parameters(model)) {}

  Count tables() const { return counts.token_embedding + counts.position_embedding; }
  /// Tables that only look up: not the token embedding when the head shares it.
  Count lookups() const { return m.tied_embeddings ? counts.position_embedding : tables(); }
  /// Entries that padding adds to the vocabulary.
  Count padded() const { return (padding - m.vocab % padding) % padding; }
  Count router() const { return m.experts ? sparse * (Count(m.experts->count) * D) : Count(0); }
  /// What Megatron adds to the compressed projections of a layer.
  Count latent_rows() const { return Count(m.latent->query_rank) + m.latent->key_value_rank; }
  /// Entries that a query meets in the products of scores (E) and of values (W), over all heads.
  Count heads() const { return H * (E + W); }

  const ModelSpec& m;
  Count L, D, H, K, E, W, F, V, T, sparse;
  ParameterCounts counts;
  Count N, P;
};

/// Six times the parameters, and the products of scores and values with all T keys or, causal, with half of
/// them.
Count sum(const Letters& x, Count parameters, Count head_entries, bool causal) {
  return 6 * parameters + (causal ? 3 : 6) * x.L * head_entries * x.T;
}

/// Both component conventions of llm_TII, from the forward's parts per layer and token.
Count component_sum(const Letters& x, bool rope) {
  const int matrices = gated(x.m.mlp) ? 6 : 4;
  // In halves of a FLOP, because of the norms' 1.5 D.
  const Count projections = 2 * (4 * x.D * x.D + (4 * x.D * x.D * x.K).divided_exactly_by(x.H)),
              attention = 2 * (4 * x.D * x.T), mlp = 2 * (matrices * x.D * x.F),
              norm = (x.m.norm == Norm::rms_norm ? 3 : 4) * x.D,
              turns = rope && x.m.positions == Positions::rope ? 2 * (4 * x.D) : Count(0);
  const Count halves =
      3 * (x.L * (projections + attention + mlp + turns + 2 * norm) + norm + 2 * (2 * x.D * x.V));
  const bool whole = (halves.to_string().back() - '0') % 2 == 0;
  return (whole ? halves : halves + 1).divided_exactly_by(2);
}

/// Llama-like matrices and head, with heads and output projection as wide as the convention takes them.
Count llama_matrices(const Letters& x, Count query, Count key_value, Count output) {
  return x.L * (x.D * (query + 2 * key_value) + x.D * output + 3 * x.D * x.F) + x.V * x.D;
}

/// Without the router, with the padded vocabulary, and with one more row per compressed projection, as it
/// counts the norms of these.
Count megatron_parameters(const Letters& x) {
  Count parameters = x.P - x.router() + x.padded() * x.D;
  if (x.m.latent) parameters += x.L * x.latent_rows();
  return parameters;
}

/// Its multi-token blocks: of each a layer as above, sparse when the last one is, the projection of 2 D to D
/// with three norms of D, and the head once more.
Count megatron_multi_token(const Letters& x) {
  if (x.m.multi_token_layers == 0) return 0;
  const Count blocks = x.m.multi_token_layers;
  // `exact` has causal pairs with the whole diagonal and the router, and none of norms and padding.
  ModelSpec full = x.m;
  full.window = 0;  // Megatron-LM counts every causal pair
  const Count exact = multi_token_flops(full, x.T.to_int64()).per_token(), diagonal = 3 * blocks * x.heads();
  Count router = 0, rows = 0;
  if (x.m.experts) router = Count(x.m.experts->count) * x.D;
  if (x.m.latent) rows = x.latent_rows();
  return exact + 6 * blocks * (3 * x.D + x.padded() * x.D + rows) - diagonal - 6 * blocks * router;
}

/// KempnerForge's experts are as wide as its dense MLP, and shared ones are counted one by one.
Count kempnerforge_parameters(const Letters& x) {
  if (!x.m.experts) return x.P;
  const Experts& e = *x.m.experts;
  const Count mlp = 3 * x.D * (x.m.ffn > 0 ? x.m.ffn : e.width),
              attention = x.D * (x.H + 2 * x.K) * x.E + x.H * x.E * x.D;
  return x.L * attention + (x.L - x.sparse) * mlp + x.sparse * (e.active + e.shared_width / e.width) * mlp +
         x.V * x.D;
}

/// Why `convention` cannot count `m`; empty when it can.
std::string why_not(Convention convention, const ModelSpec& m) {
  using enum Convention;
  const bool llama = gated(m.mlp) && m.positions == Positions::rope;
  const auto first = [](std::initializer_list<std::pair<bool, const char*>> reasons) {
    for (const auto& [holds, reason] : reasons)
      if (holds) return std::string(reason);
    return std::string();
  };
  const std::pair<bool, const char*> experts = {m.experts.has_value(), "it knows no mixture of experts"},
                                     latent = {m.latent.has_value(), "it knows no latent attention"},
                                     ragged = {m.width % m.heads != 0, "width / heads is not whole"},
                                     foreign = {!llama, "it is written for Llama's blocks"},
                                     wide = {m.heads * m.head_dim != m.width,
                                             "its heads have width / heads entries"};
  switch (convention) {
    case nanogpt_legacy_v1:
    case combined_formula_v2:
    case component_summation_v2025:
    case nanochat:
      return first({experts, latent, ragged});
    case nanotron:
      return first({experts, latent, ragged, foreign});
    case llmc:
      return first({experts, latent});
    case llmq:
    case surogate:
      return first({experts, latent, foreign});
    case kempnerforge:
      return first({latent, foreign, wide});
    case kempnerforge_published:
      return first({experts, latent, foreign, wide});
    default:
      return "";
  }
}

Count count(Convention convention, const Letters& x) {
  using enum Convention;
  switch (convention) {
    case exact:
      break;
    case palm_total:
      return sum(x, x.N, x.heads(), false);
    case palm_nonembedding:
      return sum(x, x.N - x.tables(), x.heads(), false);
    case six_n:
      return 6 * x.N;
    case six_n_nonembedding:
      return 6 * (x.N - x.tables() - x.counts.head);
    case nanogpt_legacy_v1:
      return sum(x, x.N - x.counts.position_embedding, 2 * x.D, false);
    case combined_formula_v2:
      return component_sum(x, true);
    case component_summation_v2025:
      return component_sum(x, false);
    case megatron:
      return sum(x, megatron_parameters(x), x.heads(), true) + megatron_multi_token(x);
    case torchtitan:
      return sum(x, x.N - x.lookups(), x.heads(), false);
    case kempnerforge:
      return sum(x, kempnerforge_parameters(x), 2 * x.D, false);
    case kempnerforge_published:
      return sum(x, x.N, 2 * x.D, false);
    case llmc:
      return sum(x, x.N + (x.m.tied_embeddings ? 1 : 2) * x.padded() * x.D, 2 * x.D, true);
    case llmq:
      return sum(x, x.P, x.heads(), true);
    case nanochat:
      return sum(x, x.N - x.lookups(), 2 * x.D, false);
    case surogate:
      return sum(x, llama_matrices(x, x.H * x.E, x.K * x.E, x.D), x.heads(), true);
    case nanotron:
      return sum(x, llama_matrices(x, x.D, (x.D * x.K).divided_exactly_by(x.H), x.D), 2 * x.D, false);
  }
  return exact_flops_per_token(x.m, x.T.to_int64());
}

}  // namespace

ConventionCount flops_per_token(Convention convention, const ModelSpec& model, std::int64_t sequence_length) {
  check(model);
  // flops_c1
  require(sequence_length >= 1, "flops_c1",
          [&] { return "sequence_length=" + std::to_string(sequence_length); });
  if (const std::string reason = why_not(convention, model); !reason.empty())
    return {std::nullopt, "does not apply: " + reason};
  return {count(convention, Letters(model, sequence_length)), ""};
}

Count palm_flops_per_token(std::int64_t parameters, std::int64_t layers, std::int64_t heads,
                           std::int64_t head_dim, std::int64_t sequence_length) {
  for (std::int64_t value : {parameters, layers, heads, head_dim, sequence_length})
    // flops_c1
    require(value >= 1, "flops_c1",
            [&] { return "a factor of 6 N + 12 L H Q T is " + std::to_string(value); });
  return 6 * Count(parameters) + 12 * Count(layers) * heads * head_dim * sequence_length;
}

}  // namespace assay::spec
