#include "spec/flops/conventions.hpp"

#include "spec/error.hpp"
#include "spec/flops/exact.hpp"

namespace assay::spec {
namespace {

constexpr std::int64_t padding = 128;  ///< vocabularies are padded to a multiple of it by Megatron and llm.c

/// The letters of the formulas.
struct Letters {
  Letters(const ModelSpec& model, std::int64_t sequence_length)
      : m(model),
        L(model.layers),
        D(model.width),
        H(model.heads),
        K(model.kv_heads),
        E(model.head_dim),
        F(model.ffn),
        V(model.vocab),
        T(sequence_length),
        N(parameter_count(model)),
        P(matmul_parameters(model)) {}

  Count embedding() const { return V * D; }
  /// The input embedding as a table of its own: nothing when the head shares it.
  Count lookup() const { return m.tied_embeddings ? Count(0) : embedding(); }
  /// Entries that padding adds to the vocabulary.
  Count padded() const { return (padding - m.vocab % padding) % padding; }

  const ModelSpec& m;
  Count L, D, H, K, E, F, V, T, N, P;
};

/// Why a formula written for width D / H heads has no meaning here; empty when it has one.
std::string no_even_heads(const ModelSpec& m) {
  return m.width % m.heads == 0 ? "" : "its heads have width / heads entries, which is not whole";
}

/// Six times the parameters and six times the layers' products of scores and values, over all T keys or half
/// of them.
Count sum(const Letters& x, Count parameters, Count head_entries, int attention) {
  return 6 * parameters + attention * x.L * head_entries * x.T;
}

/// Both component conventions of llm_TII: per layer and token, forward; norms of 1.5 D each.
Count component_sum(const Letters& x, Count rope) {
  // In halves of a FLOP, because of the norms' 1.5 D.
  const Count projections = 2 * (4 * x.D * x.D + (4 * x.D * x.D * x.K).divided_exactly_by(x.H)),
              attention = 2 * (4 * x.D * x.T), mlp = 2 * (6 * x.D * x.F), norm = 3 * x.D;
  const Count halves =
      3 * (x.L * (projections + attention + mlp + 2 * rope + 2 * norm) + norm + 2 * (2 * x.D * x.V));
  return halves.to_string().back() % 2 == 0 ? halves.divided_exactly_by(2)
                                            : (halves + 1).divided_exactly_by(2);
}

/// Llama-like matrices with the output projection as D x D and heads as given.
Count matrices(const Letters& x, Count query, Count key_value, Count output) {
  return x.L * (x.D * (query + 2 * key_value) + x.D * output + 3 * x.D * x.F) + x.V * x.D;
}

/// Why `convention` cannot count `m`; empty when it can.
std::string why_not(Convention convention, const ModelSpec& m) {
  using enum Convention;
  switch (convention) {
    case nanogpt_legacy_v1:
    case combined_formula_v2:
    case component_summation_v2025:
    case nanochat:
    case nanotron:
      return no_even_heads(m);
    case kempnerforge:
    case kempnerforge_published:
      return m.heads * m.head_dim == m.width ? "" : "its models have head_dim = width / heads";
    default:
      return "";
  }
}

Count count(Convention convention, const Letters& x) {
  using enum Convention;
  const Count heads = x.H * x.E;
  switch (convention) {
    case exact:
      break;
    case palm_total:
      return sum(x, x.N, heads, 12);
    case palm_nonembedding:
      return sum(x, x.N - x.embedding(), heads, 12);
    case nanogpt_legacy_v1:
      return sum(x, x.N, x.D, 12);
    case combined_formula_v2:
      return component_sum(x, 4 * x.D);
    case component_summation_v2025:
      return component_sum(x, 0);
    case megatron:
      return sum(x, x.P + x.padded() * x.D, heads, 6);
    case torchtitan:
      return sum(x, x.N - x.lookup(), heads, 12);
    case kempnerforge:
      return sum(x, x.P, x.D, 12);
    case kempnerforge_published:
      return sum(x, x.N, x.D, 12);
    case llmc:
      return sum(x, x.N + (x.m.tied_embeddings ? 1 : 2) * x.padded() * x.D, x.D, 6);
    case llmq:
      return sum(x, x.P, heads, 6);
    case nanochat:
      return sum(x, x.N - x.lookup(), x.D, 12);
    case surogate:
      return sum(x, matrices(x, heads, x.K * x.E, x.D), heads, 6);
    case nanotron:
      return sum(x, matrices(x, x.D, (x.D * x.K).divided_exactly_by(x.H), x.D), x.D, 12);
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
