// How many parameters a model has, by the closed forms of spec/model/model.md.
#include "spec/model/model_spec.hpp"

#include <algorithm>

namespace assay::spec {

namespace {

/// One norm over `entries`: a gain, and a bias where the model's norms have one.
Count norm(const ModelSpec& m, Count entries) { return entries * (m.norm_bias ? 2 : 1); }

Count latent_attention(const ModelSpec& m) {
  const LatentAttention& a = *m.latent;
  const Count D = m.width, E = m.head_dim, H = m.heads, Cq = a.query_rank, Ckv = a.key_value_rank,
              R = a.rope_dim, W = a.value_dim;
  const Count query = a.query_rank > 0 ? D * Cq + Cq + Cq * H * E : D * H * E;
  // The compressed keys and values are normalised, the turned part of the key is not.
  const Count key_value = D * (Ckv + R) + Ckv + Ckv * H * (E - R + W);
  return query + key_value + H * W * D;
}

Count attention_parameters(const ModelSpec& m) {
  if (m.latent) return latent_attention(m);
  const Count D = m.width, E = m.head_dim, H = m.heads, K = m.kv_heads;
  Count count = D * (H + 2 * K) * E + H * E * D;
  if (m.qkv_bias) count += (H + 2 * K) * E;
  if (m.output_bias) count += D;
  if (m.qk_norm) count += m.qk_norm_across_heads ? (H + K) * E : 2 * E;
  return count;
}

/// An MLP of inner width `inner`: gate and up, or up alone, and down.
Count mlp(const ModelSpec& m, Count inner) {
  const Count into = gated(m.mlp) ? 2 : 1, D = m.width;
  Count count = (into + 1) * D * inner;
  if (m.mlp_bias) count += into * inner + D;
  return count;
}

/// Of the experts of one sparse layer, `visited` routed ones counted.
Count expert_layer(const ModelSpec& m, std::int64_t visited) {
  const Experts& e = *m.experts;
  Count count = visited * mlp(m, e.width) + Count(e.count) * m.width;
  if (e.shared_width > 0) count += mlp(m, e.shared_width);
  return count;
}

/// What one multi-token block adds: two norms, the projection of both halves, a sparse (else dense) decoder
/// block, the norm before the shared head.
Count multi_token_block(const ModelSpec& m, std::int64_t visited) {
  const Count D = m.width;
  return 5 * norm(m, D) + 2 * D * D + attention_parameters(m) +
         (m.experts ? expert_layer(m, visited) : mlp(m, m.ffn));
}

}  // namespace

bool ModelSpec::sparse(std::int64_t layer) const {
  return experts && layer >= experts->first_dense && (layer + 1) % experts->every == 0;
}

std::int64_t ModelSpec::sparse_layers() const { return sparse_before(layers); }

std::int64_t ModelSpec::sparse_before(std::int64_t layer) const {
  return experts ? std::max<std::int64_t>(0, layer / experts->every - experts->first_dense / experts->every)
                 : 0;
}

ParameterCounts parameter_counts(const ModelSpec& m) {
  const Count words = Count(m.vocab) * m.width;
  ParameterCounts out;
  out.token_embedding = words;
  if (m.positions == Positions::learned) out.position_embedding = Count(m.context) * m.width;
  if (!m.tied_embeddings) out.head = words;
  const std::int64_t sparse = m.sparse_layers();
  const Count always = out.token_embedding + out.position_embedding + out.head + norm(m, m.width) +
                       m.layers * (2 * norm(m, m.width) + attention_parameters(m)) +
                       (m.layers - sparse) * mlp(m, m.ffn);
  out.total = out.active = always;
  const std::int64_t every = m.experts ? m.experts->count : 0, visited = m.experts ? m.experts->active : 0;
  if (m.experts) {
    out.total += sparse * expert_layer(m, every);
    out.active += sparse * expert_layer(m, visited);
  }
  out.multi_token = m.multi_token_layers * multi_token_block(m, every);
  out.multi_token_active = m.multi_token_layers * multi_token_block(m, visited);
  return out;
}

Count parameter_count(const ModelSpec& m) { return parameter_counts(m).total; }

Count active_parameter_count(const ModelSpec& m) { return parameter_counts(m).active; }

}  // namespace assay::spec
