#include "tests/support/draw_model.hpp"

#include <rapidcheck.h>

namespace assay::tests {

spec::ModelSpec draw_model() {
  const auto between = [](std::int64_t low, std::int64_t high) {
    return *rc::gen::inRange<std::int64_t>(low, high + 1);
  };
  spec::ModelSpec model;
  model.name = "drawn";
  model.vocab = between(1, 40);
  model.width = between(1, 24);
  model.layers = between(1, 4);
  model.kv_heads = between(1, 3);
  model.heads = model.kv_heads * between(1, 3);
  model.head_dim = 2 * between(1, 4);
  model.ffn = between(1, 24);
  model.context = between(1, 32);
  model.tied_embeddings = *rc::gen::arbitrary<bool>();
  model.qk_norm = *rc::gen::arbitrary<bool>();
  model.qk_norm_across_heads = model.qk_norm && *rc::gen::arbitrary<bool>();
  model.qkv_bias = *rc::gen::arbitrary<bool>();
  model.mlp = *rc::gen::element(spec::Mlp::swiglu, spec::Mlp::geglu);
  model.family = model.qk_norm    ? spec::Family::qwen3
                 : model.qkv_bias ? spec::Family::qwen2
                                  : spec::Family::llama;
  if (*rc::gen::arbitrary<bool>())
    model.rope_scaling = {.factor = 8, .low_freq_factor = 1, .high_freq_factor = 4, .original_context = 16};
  if (*rc::gen::arbitrary<bool>()) model.window = between(1, 16);
  return model;
}

void draw_latent(spec::ModelSpec& m) {
  m.latent = spec::LatentAttention{.query_rank = *rc::gen::inRange<std::int64_t>(0, 9),
                                   .key_value_rank = *rc::gen::inRange<std::int64_t>(1, 9),
                                   .rope_dim = 2 * *rc::gen::inRange<std::int64_t>(1, 4),
                                   .value_dim = *rc::gen::inRange<std::int64_t>(1, 9),
                                   .interleaved = *rc::gen::arbitrary<bool>(),
                                   .norm_eps = *rc::gen::element(1e-6, 1e-5)};
  m.head_dim = m.latent->rope_dim + *rc::gen::inRange<std::int64_t>(1, 9);
  m.kv_heads = m.heads;
  m.qk_norm = m.qk_norm_across_heads = m.qkv_bias = m.output_bias = false;
}

spec::ModelSpec draw_trainable_model() {
  spec::ModelSpec model = draw_model();
  if (*rc::gen::inRange(0, 3) == 0) {
    draw_latent(model);
    model.family = spec::Family::deepseek_v3;
  }
  return model;
}

spec::Experts draw_experts(std::int64_t layers) {
  const auto between = [](std::int64_t low, std::int64_t high) {
    return *rc::gen::inRange<std::int64_t>(low, high + 1);
  };
  spec::Experts experts;
  experts.groups = between(1, 3);
  const std::int64_t of_group = between(1, 4) + (experts.groups > 1 ? 1 : 0);
  experts.count = experts.groups * of_group;
  experts.active_groups = 1 + between(0, 5) % experts.groups;
  experts.active = 1 + between(0, 29) % (experts.active_groups * of_group);
  experts.scoring = *rc::gen::element(spec::Scoring::softmax, spec::Scoring::sigmoid);
  experts.renormalised = *rc::gen::arbitrary<bool>();
  experts.scaling_factor = *rc::gen::element(1.0, 2.5);
  experts.width = between(1, 12);
  experts.shared_width = *rc::gen::arbitrary<bool>() ? between(1, 12) : 0;
  experts.every = between(1, layers);
  // The last sparse layer must not be among the leading dense ones.
  experts.first_dense = between(0, layers / experts.every * experts.every - 1);
  experts.router_bias = *rc::gen::arbitrary<bool>();
  return experts;
}

spec::ModelSpec draw_described_model() {
  using namespace spec;
  const auto coin = [] { return *rc::gen::arbitrary<bool>(); };
  ModelSpec m = draw_model();
  m.name += coin() ? "" : "-again";
  m.norm_eps = *rc::gen::element(1e-6, 1e-5);
  m.rope_theta = *rc::gen::element(1e4, 5e5);
  m.init_std = *rc::gen::element(0.02, 0.2);
  if (m.rope_scaling && coin())
    m.rope_scaling = {.factor = 2, .low_freq_factor = 2, .high_freq_factor = 8, .original_context = 8};
  m.norm = coin() ? Norm::rms_norm : Norm::layer_norm;
  m.norm_bias = m.norm == Norm::layer_norm && coin();
  m.mlp = *rc::gen::element(Mlp::swiglu, Mlp::gelu, Mlp::geglu);
  m.positions = coin() ? Positions::rope : Positions::learned;
  m.qkv_bias = coin(), m.output_bias = coin(), m.mlp_bias = coin();
  if (m.positions == Positions::learned) m.rope_scaling.reset();
  if (m.rope_scaling && coin())
    m.rope_scaling = {.factor = 4,
                      .original_context = 16,
                      .kind = RopeScalingKind::yarn,
                      .beta_fast = *rc::gen::element(32.0, 16.0),
                      .beta_slow = *rc::gen::element(1.0, 2.0),
                      .mscale = *rc::gen::element(0.0, 0.7),
                      .mscale_all_dim = *rc::gen::element(0.0, 1.0),
                      .attention_factor = *rc::gen::element(0.0, 1.5)};
  if (coin()) m.experts = draw_experts(m.layers);
  if (m.positions == Positions::rope && coin()) draw_latent(m);
  if (coin()) m.multi_token_layers = *rc::gen::inRange<std::int64_t>(1, 3);
  m.family = *rc::gen::element(Family::llama, Family::qwen2, Family::mixtral, Family::qwen3_moe,
                               Family::deepseek_v3, Family::olmoe);
  const bool gpt2_shape = m.mlp == Mlp::gelu && m.positions == Positions::learned &&
                          m.norm == Norm::layer_norm && !m.experts && m.multi_token_layers == 0;
  if (gpt2_shape && coin())
    m.family = Family::gpt2, m.kv_heads = m.heads, m.qk_norm = m.qk_norm_across_heads = false;
  return m;
}

}  // namespace assay::tests
