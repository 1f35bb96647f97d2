#include "spec/flops/exact.hpp"

#include <string>

#include "spec/error.hpp"
#include "spec/ops/attention/attention.hpp"

namespace assay::spec {

namespace {
void check_length(std::int64_t sequence_length) {
  // flops_c1
  require(sequence_length >= 1, "flops_c1",
          [&] { return "sequence_length=" + std::to_string(sequence_length); });
}

/// Adds up one sequence's products, component by component.
class Counter {
 public:
  Counter(const ModelSpec& model, std::int64_t sequence_length) : m_(model), T_(sequence_length) {
    out.sequence_length = sequence_length;
  }

  /// Every token meets `parameters` entries of matrices.
  void product(FlopComponent component, Count parameters) { add(component, 2 * T_ * parameters); }

  void decoder_blocks(std::int64_t blocks, std::int64_t sparse) {
    const Count D = m_.width, H = m_.heads, E = m_.head_dim, W = m_.value_dim();
    const Count pairs = attention::document_pairs(out.sequence_length, m_.window);
    if (m_.latent)
      latent_projections(blocks);
    else
      product(FlopComponent::qkv, blocks * (D * (H + 2 * Count(m_.kv_heads)) * E));
    add(FlopComponent::attention_scores, blocks * (2 * pairs * H * E));
    add(FlopComponent::attention_values, blocks * (2 * pairs * H * W));
    product(FlopComponent::attention_output, blocks * (H * W * D));
    product(FlopComponent::gate_up, (blocks - sparse) * (into_mlp() * D * m_.ffn));
    product(FlopComponent::down, (blocks - sparse) * (D * m_.ffn));
    if (sparse > 0) experts(sparse);
  }

  FlopBreakdown out;

 private:
  /// Matrices that lead into the MLP: gate and up, or up alone.
  Count into_mlp() const { return gated(m_.mlp) ? 2 : 1; }

  void latent_projections(std::int64_t blocks) {
    const LatentAttention& a = *m_.latent;
    const Count D = m_.width, H = m_.heads, E = m_.head_dim, Cq = a.query_rank, Ckv = a.key_value_rank,
                R = a.rope_dim, W = a.value_dim;
    if (a.query_rank == 0) product(FlopComponent::qkv, blocks * (D * H * E));
    product(FlopComponent::latent_projections,
            blocks * (Cq * (D + H * E) + D * (Ckv + R) + Ckv * H * (E - R + W)));
  }

  void experts(std::int64_t blocks) {
    const Experts& e = *m_.experts;
    const Count D = m_.width, matrices = into_mlp() + 1;
    product(FlopComponent::router, blocks * (Count(e.count) * D));
    product(FlopComponent::routed_experts, blocks * (e.active * matrices * D * e.width));
    product(FlopComponent::shared_experts, blocks * (matrices * D * e.shared_width));
  }

  /// Backward is two products of the forward's size, one for the gradient of each factor.
  void add(FlopComponent component, Count forward) {
    auto& count = out.counts[static_cast<std::size_t>(component)];
    count[0] += forward;
    count[1] += 2 * forward;
  }

  const ModelSpec& m_;
  Count T_;
};
}  // namespace

std::string_view to_string(FlopComponent component) {
  constexpr std::array<std::string_view, flop_components> names = {"embedding",
                                                                   "qkv",
                                                                   "attention_scores",
                                                                   "attention_values",
                                                                   "attention_output",
                                                                   "gate_up",
                                                                   "down",
                                                                   "head",
                                                                   "latent_projections",
                                                                   "router",
                                                                   "routed_experts",
                                                                   "shared_experts",
                                                                   "multi_token_projection"};
  return names[static_cast<std::size_t>(component)];
}

std::string_view to_string(Pass pass) { return pass == Pass::forward ? "forward" : "backward"; }

Count FlopBreakdown::of(FlopComponent component) const {
  return at(component, Pass::forward) + at(component, Pass::backward);
}

Count FlopBreakdown::of(Pass pass) const {
  Count sum;
  for (const auto& count : counts) sum += count[static_cast<std::size_t>(pass)];
  return sum;
}

Count FlopBreakdown::per_sequence() const { return of(Pass::forward) + of(Pass::backward); }

Count FlopBreakdown::per_token() const { return per_sequence().divided_to_nearest(sequence_length); }

FlopBreakdown exact_flops(const ModelSpec& m, std::int64_t sequence_length) {
  check(m);
  check_length(sequence_length);
  Counter counter(m, sequence_length);
  counter.decoder_blocks(m.layers, m.sparse_layers());
  counter.product(FlopComponent::head, Count(m.vocab) * m.width);
  return counter.out;
}

FlopBreakdown multi_token_flops(const ModelSpec& m, std::int64_t sequence_length) {
  check(m);
  check_length(sequence_length);
  Counter counter(m, sequence_length);
  const std::int64_t blocks = m.multi_token_layers;
  counter.decoder_blocks(blocks, m.experts ? blocks : 0);
  counter.product(FlopComponent::multi_token_projection, blocks * (2 * Count(m.width) * m.width));
  counter.product(FlopComponent::head, blocks * (Count(m.vocab) * m.width));
  return counter.out;
}

Count exact_flops_per_token(const ModelSpec& m, std::int64_t sequence_length) {
  check(m);
  check_length(sequence_length);
  const Count heads = Count(m.heads) * (Count(m.head_dim) + m.value_dim());
  const Count pairs = attention::document_pairs(sequence_length, m.window);
  return 6 * matmul_parameters(m) + (6 * Count(m.layers) * heads * pairs).divided_to_nearest(sequence_length);
}

Count matmul_parameters(const ModelSpec& m) {
  check(m);
  // Everything that is a vector, in the order of spec/model/model.md.
  const std::int64_t sparse = m.sparse_layers(), dense = m.layers - sparse;
  const Count D = m.width, norm = D * (m.norm_bias ? 2 : 1), up = gated(m.mlp) ? 2 : 1;
  const auto mlp_biases = [&](Count inner) { return up * inner + D; };
  Count block = 2 * norm;
  if (m.latent) block += Count(m.latent->query_rank) + m.latent->key_value_rank;
  if (m.qk_norm) block += (m.qk_norm_across_heads ? Count(m.heads) + m.kv_heads : Count(2)) * m.head_dim;
  if (m.qkv_bias) block += (Count(m.heads) + 2 * Count(m.kv_heads)) * m.head_dim;
  if (m.output_bias) block += D;
  Count vectors = m.layers * block + norm;
  if (m.mlp_bias) vectors += dense * mlp_biases(m.ffn);
  if (m.experts && m.mlp_bias) {
    vectors += sparse * (m.experts->active * mlp_biases(m.experts->width));
    if (m.experts->shared_width > 0) vectors += sparse * mlp_biases(m.experts->shared_width);
  }
  const ParameterCounts counts = parameter_counts(m);
  const Count lookup = m.tied_embeddings ? Count(0) : counts.token_embedding;
  return counts.active - vectors - lookup - counts.position_embedding;
}

}  // namespace assay::spec
