#pragma once
// One change of every field of a model, with what it moves: tests hold the trainer's allow-list, the counts
// and the reference to it. A field without a line does not compile (spec/model/fields.hpp).
#include <string>
#include <type_traits>

#include "spec/model/fields.hpp"

namespace assay::tests {

enum Moves : unsigned {
  nothing = 0,
  tensors = 1,     ///< names and shapes of the inventory, multi-token blocks included
  parameters = 2,  ///< parameter_counts, total and multi-token
  flops = 4,       ///< exact_flops and multi_token_flops
  loss = 8,        ///< the first loss of the reference, where it computes the changed model
  sizes = tensors | parameters | flops
};

template <class Part>
struct Change {
  void (*apply)(Part&);
  const char* refusal;  ///< the trainer's, in words that name the feature; empty: it computes the change
  unsigned moves;       ///< of a model from `changed_model`
};

/// A model that trains; every change below keeps it within spec::check.
inline spec::ModelSpec changed_model() {
  spec::ModelSpec m;
  m.name = "changed";
  m.vocab = 11, m.width = 8, m.layers = 2, m.heads = 4, m.kv_heads = 2, m.head_dim = 8, m.ffn = 12;
  m.context = 16, m.init_std = 0.2;
  // Of the four frequencies one lies between the scaling's two bounds, the others are divided by the factor.
  m.rope_scaling = {.factor = 8, .low_freq_factor = 1, .high_freq_factor = 4, .original_context = 16};
  return m;
}

namespace changes {
using namespace spec;

template <class Part, class T>
constexpr auto line(T Part::*member, const char* refusal, unsigned moves,
                    std::type_identity_t<void (*)(Part&)> apply) {
  return of(member, Change<Part>{apply, refusal, moves});
}

inline constexpr std::tuple of_model = {
    line(&ModelSpec::name, "", nothing, [](auto& m) { m.name = "other"; }),
    line(&ModelSpec::family, "", nothing, [](auto& m) { m.family = Family::mixtral; }),
    line(&ModelSpec::vocab, "", sizes | loss, [](auto& m) { m.vocab += 2; }),
    line(&ModelSpec::width, "", sizes | loss, [](auto& m) { m.width += 1; }),
    line(&ModelSpec::layers, "", sizes | loss, [](auto& m) { m.layers += 1; }),
    line(&ModelSpec::heads, "", sizes | loss, [](auto& m) { m.heads += m.kv_heads; }),
    line(&ModelSpec::kv_heads, "", sizes | loss, [](auto& m) { m.kv_heads = m.heads; }),
    line(&ModelSpec::head_dim, "", sizes | loss, [](auto& m) { m.head_dim += 2; }),
    line(&ModelSpec::ffn, "", sizes | loss, [](auto& m) { m.ffn += 1; }),
    line(&ModelSpec::context, "", nothing, [](auto& m) { m.context += 1; }),
    line(&ModelSpec::tied_embeddings, "", tensors | parameters | loss,
         [](auto& m) { m.tied_embeddings = !m.tied_embeddings; }),
    line(&ModelSpec::qk_norm, "", tensors | parameters | loss,
         [](auto& m) { m.qk_norm = !m.qk_norm, m.qk_norm_across_heads = false; }),
    line(&ModelSpec::norm_eps, "", loss, [](auto& m) { m.norm_eps *= 2; }),
    line(&ModelSpec::rope_theta, "", loss, [](auto& m) { m.rope_theta *= 2; }),
    line(&ModelSpec::rope_scaling, "", loss, [](auto& m) { m.rope_scaling.reset(); }),
    line(&ModelSpec::init_std, "", loss, [](auto& m) { m.init_std *= 2; }),
    line(&ModelSpec::norm, "layer_norm", nothing, [](auto& m) { m.norm = Norm::layer_norm; }),
    line(&ModelSpec::norm_bias, "layer_norm", tensors | parameters,
         [](auto& m) { m.norm = Norm::layer_norm, m.norm_bias = true; }),
    line(&ModelSpec::mlp, "gelu", sizes, [](auto& m) { m.mlp = Mlp::gelu; }),
    line(&ModelSpec::positions, "learned positions", tensors | parameters,
         [](auto& m) { m.positions = Positions::learned, m.rope_scaling.reset(); }),
    line(&ModelSpec::qkv_bias, "", tensors | parameters | loss, [](auto& m) { m.qkv_bias = true; }),
    line(&ModelSpec::output_bias, "a bias of its attention output", tensors | parameters,
         [](auto& m) { m.output_bias = true; }),
    line(&ModelSpec::mlp_bias, "biases of its MLP", tensors | parameters, [](auto& m) { m.mlp_bias = true; }),
    line(&ModelSpec::experts, "", sizes | loss,
         [](auto& m) { m.experts = Experts{.count = 4, .active = 2, .width = 8}; }),
    line(&ModelSpec::latent, "", sizes | loss,
         [](auto& m) {
           m.latent = LatentAttention{.query_rank = 3, .key_value_rank = 4, .rope_dim = 2, .value_dim = 5},
           m.kv_heads = m.heads;
         }),
    line(&ModelSpec::multi_token_layers, "multi-token prediction", sizes,
         [](auto& m) { m.multi_token_layers = 1; }),
    line(&ModelSpec::window, "", flops | loss, [](auto& m) { m.window = m.window == 5 ? 4 : 5; }),
    line(&ModelSpec::qk_norm_across_heads, "", tensors | parameters | loss,
         [](auto& m) { m.qk_norm = m.qk_norm_across_heads = true; })};
static_assert(covers(spec::model_fields, of_model), "say what a change of the new field moves");

inline constexpr std::tuple of_scaling = {
    line(&RopeScaling::factor, "", loss, [](auto& s) { s.factor *= 2; }),
    line(&RopeScaling::low_freq_factor, "", loss, [](auto& s) { s.low_freq_factor = 2; }),
    line(&RopeScaling::high_freq_factor, "", loss, [](auto& s) { s.high_freq_factor = 8; }),
    line(&RopeScaling::original_context, "", loss, [](auto& s) { s.original_context *= 2; }),
    line(&RopeScaling::kind, "", loss, [](auto& s) { s.kind = RopeScalingKind::yarn; }),
    // Fields of yarn, which a model scaled by llama3 does not read.
    line(&RopeScaling::beta_fast, "", nothing, [](auto& s) { s.beta_fast = 16; }),
    line(&RopeScaling::beta_slow, "", nothing, [](auto& s) { s.beta_slow = 2; }),
    line(&RopeScaling::mscale, "", nothing, [](auto& s) { s.mscale = 1; }),
    line(&RopeScaling::mscale_all_dim, "", nothing, [](auto& s) { s.mscale_all_dim = 1; }),
    line(&RopeScaling::attention_factor, "", nothing, [](auto& s) { s.attention_factor = 2; })};
static_assert(covers(spec::scaling_fields, of_scaling), "say what a change of the new field moves");

/// Of a model scaled by yarn.
inline constexpr std::tuple of_yarn = {
    line(&RopeScaling::factor, "", loss, [](auto& s) { s.factor *= 2; }),
    line(&RopeScaling::low_freq_factor, "", nothing, [](auto& s) { s.low_freq_factor = 2; }),
    line(&RopeScaling::high_freq_factor, "", nothing, [](auto& s) { s.high_freq_factor = 8; }),
    line(&RopeScaling::original_context, "", loss, [](auto& s) { s.original_context *= 2; }),
    line(&RopeScaling::kind, "", loss, [](auto& s) { s.kind = RopeScalingKind::llama3; }),
    line(&RopeScaling::beta_fast, "", loss, [](auto& s) { s.beta_fast = 8; }),
    line(&RopeScaling::beta_slow, "", loss, [](auto& s) { s.beta_slow = 4; }),
    line(&RopeScaling::mscale, "", loss, [](auto& s) { s.mscale = 1; }),
    line(&RopeScaling::mscale_all_dim, "", loss, [](auto& s) { s.mscale_all_dim = 1; }),
    line(&RopeScaling::attention_factor, "", loss, [](auto& s) { s.attention_factor = 2; })};
static_assert(covers(spec::scaling_fields, of_yarn), "say what a change of the new field moves");

inline constexpr std::tuple of_experts = {
    line(&Experts::count, "", sizes | loss, [](auto& e) { e.count += 2; }),
    line(&Experts::active, "", flops | loss, [](auto& e) { e.active += 1; }),
    line(&Experts::width, "", sizes | loss, [](auto& e) { e.width += 1; }),
    line(&Experts::shared_width, "", sizes | loss, [](auto& e) { e.shared_width += 1; }),
    line(&Experts::first_dense, "", sizes | loss, [](auto& e) { e.first_dense = 1; }),
    line(&Experts::every, "", sizes | loss, [](auto& e) { e.every = 2; }),
    // Initially 0; the matrices behind it are drawn from other streams.
    line(&Experts::router_bias, "", tensors | loss, [](auto& e) { e.router_bias = true; }),
    line(&Experts::scoring, "", loss, [](auto& e) { e.scoring = Scoring::sigmoid; }),
    line(&Experts::renormalised, "", loss, [](auto& e) { e.renormalised = false; }),
    line(&Experts::groups, "", loss, [](auto& e) { e.groups = 3; }),
    line(&Experts::active_groups, "", loss, [](auto& e) { e.groups = 3, e.active_groups = 2; }),
    line(&Experts::scaling_factor, "", loss, [](auto& e) { e.scaling_factor = 2; })};
static_assert(covers(spec::experts_fields, of_experts), "say what a change of the new field moves");

inline constexpr std::tuple of_latent = {
    line(&LatentAttention::query_rank, "", sizes | loss, [](auto& a) { a.query_rank += 1; }),
    line(&LatentAttention::key_value_rank, "", sizes | loss, [](auto& a) { a.key_value_rank += 1; }),
    line(&LatentAttention::rope_dim, "", sizes | loss, [](auto& a) { a.rope_dim += 2; }),
    line(&LatentAttention::value_dim, "", sizes | loss, [](auto& a) { a.value_dim += 1; }),
    line(&LatentAttention::interleaved, "", loss, [](auto& a) { a.interleaved = false; }),
    line(&LatentAttention::norm_eps, "", loss, [](auto& a) { a.norm_eps *= 2; })};
static_assert(covers(spec::latent_fields, of_latent), "say what a change of the new field moves");

}  // namespace changes

/// Calls check(field, before, after, refusal, moves) for every field of `model` and of each part, which
/// `before` has.
template <class Check>
void for_each_change(const spec::ModelSpec& model, Check check) {
  const auto each = [&](const spec::ModelSpec& before, const std::string& prefix, const auto& fields,
                        const auto& table, auto part_of) {
    spec::for_each(fields, [&](const auto& field) {
      spec::for_each(table, [&](const auto& entry) {
        if (!spec::same_field(field, entry)) return;
        spec::ModelSpec after = before;
        entry.said.apply(part_of(after));
        check(prefix + field.name, before, after, std::string(entry.said.refusal), entry.said.moves);
      });
    });
  };
  spec::ModelSpec scaled = model, sparse = model, latent = model, by_yarn = model;
  if (!model.rope_scaling) scaled.rope_scaling = changed_model().rope_scaling;
  sparse.experts = spec::Experts{.count = 6, .active = 2, .width = 8, .shared_width = 3};
  latent.latent = spec::LatentAttention{.query_rank = 3, .key_value_rank = 4, .rope_dim = 4, .value_dim = 5};
  latent.kv_heads = latent.heads;
  each(
      scaled, "", spec::model_fields, changes::of_model, [](auto& m) -> auto& { return m; });
  each(
      scaled, "rope_scaling.", spec::scaling_fields, changes::of_scaling,
      [](auto& m) -> auto& { return *m.rope_scaling; });
  // Of four pairs the first two keep their frequencies, and the last is between.
  by_yarn.rope_scaling = {.factor = 8,
                          .original_context = 16384,
                          .kind = spec::RopeScalingKind::yarn,
                          .mscale = 0.5,
                          .mscale_all_dim = 0.7};
  each(
      by_yarn, "rope_scaling.", spec::scaling_fields, changes::of_yarn,
      [](auto& m) -> auto& { return *m.rope_scaling; });
  each(
      sparse, "experts.", spec::experts_fields, changes::of_experts,
      [](auto& m) -> auto& { return *m.experts; });
  each(
      latent, "latent_attention.", spec::latent_fields, changes::of_latent,
      [](auto& m) -> auto& { return *m.latent; });
}

}  // namespace assay::tests
