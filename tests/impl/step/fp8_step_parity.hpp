#pragma once
// Whole training steps whose linears are in FP8, against the reference's and against one another, on any
// device.
#include "tests/impl/step/train_step_parity.hpp"

namespace assay::impl::parity {

using spec::QuantiseWeights;
using spec::quantise::Recipe;

/// Every extent fits every recipe: 128 divides them all.
inline spec::ModelSpec fp8_model(bool qwen) {
  spec::ModelSpec model;
  model.name = qwen ? "fp8-qwen" : "fp8-llama";
  model.vocab = 40, model.width = 128, model.layers = 3, model.heads = 4, model.kv_heads = 2;
  model.head_dim = 32, model.ffn = 128, model.context = 64;
  model.qk_norm = qwen;
  model.qkv_bias = qwen;
  model.tied_embeddings = qwen;
  return model;
}

/// The same with latent attention, in two layers: queries up [384, 128], or from the block's width at once,
/// keys and values down and up [256, 128] both. In a large vocabulary a document rarely begins with the same
/// token twice: their attended values would be one value, up to a rounding of the softmax, and values are
/// sums of FP8 products, which lie on ties of codes.
inline spec::ModelSpec fp8_latent_model(bool compressed_queries) {
  spec::ModelSpec model = fp8_model(false);
  model.name = compressed_queries ? "fp8-latent" : "fp8-latent-direct-queries";
  model.vocab = 211, model.layers = 2, model.heads = model.kv_heads = 2, model.head_dim = 192;
  model.latent = spec::LatentAttention{
      .query_rank = compressed_queries ? 128 : 0, .key_value_rank = 128, .rope_dim = 128, .value_dim = 64};
  return model;
}

/// Layers dense and sparse; of the sparse one attention alone is in FP8, and the experts' width of 40 fits no
/// recipe.
inline spec::ModelSpec fp8_experts_model(bool latent) {
  spec::ModelSpec model = latent ? fp8_latent_model(true) : fp8_model(false);
  model.name += "-experts";
  model.vocab = 211, model.layers = 2;
  model.experts = spec::Experts{.count = 5, .active = 2, .width = 40, .shared_width = 24, .first_dense = 1};
  return model;
}

/// The same with routed experts of extents that FP8 takes.
inline spec::ModelSpec fp8_whole_experts_model(bool latent) {
  spec::ModelSpec model = fp8_experts_model(latent);
  model.name += "-of-48";
  model.experts->width = 48;
  return model;
}

inline std::vector<spec::ModelSpec> fp8_models() {
  return {fp8_model(false), fp8_model(true), fp8_latent_model(true), fp8_latent_model(false),
          fp8_experts_model(true)};
}

struct Fp8Case {
  spec::LinearPrecision linear;
  spec::Recompute recompute = spec::Recompute::norms_swiglu;
  Dtype dtype = Dtype::f64;
  spec::Layout layout = spec::layout_of(spec::DataParallel::replicate, 1);
};

inline tests::StepRunner fp8_runner(const spec::ModelSpec& model, const Fp8Case& of, at::Device device,
                                    Communicator& communicator, std::uint64_t seed) {
  return {model, of.dtype,   device,     communicator, of.layout, settings(),
          seed,  Dtype::f32, Dtype::f32, of.recompute, of.linear};
}

inline reference::Batch fp8_batch(const spec::ModelSpec& model, std::uint64_t step) {
  return tests::tiny_batch(model, 4, 64, step % 2 ? tests::Documents::whole : tests::Documents::packed,
                           tests::Ignored::some, 71 + step);
}

/// Micro-batches of 2 sequences, 128 tokens: of each, activations and gradients have scales of their own.
inline run::StepResult fp8_step(tests::StepRunner& trainer, const reference::Batch& batch) {
  return trainer.step(tests::micro_batches(batch, 2), static_cast<double>(batch.valid_tokens()),
                      learning_rate);
}

/// Trains `steps` steps on both sides in fp64 and compares after each. The two sides round differently in
/// fp64, and an entry that lies that near a tie becomes another code on one of them, which shows as some
/// 1e-10 of the loss. It happens in one of some hundred thousand such comparisons of a tensor; the batches
/// are fixed, and among those where it does not.
inline void compare_fp8(const spec::ModelSpec& model, const Fp8Case& of, int steps, at::Device device) {
  const auto communicator = make_self_communicator();
  tests::StepRunner trainer = fp8_runner(model, of, device, *communicator, 3);
  reference::TrainState state = reference::initial_state(model, 3);
  const reference::Recipes recipes = reference::recipes_of(of.linear, model.layers);
  for (int step = 0; step < steps; ++step) {
    const reference::Batch batch = fp8_batch(model, static_cast<std::uint64_t>(step));
    const run::StepResult result = fp8_step(trainer, batch);
    const auto expected = reference::train_step(state, model, tests::micro_batches(batch, 2),
                                                hyperparameters(settings()), learning_rate, recipes);
    const std::string where =
        model.name + " " + to_string(of.linear.recipe) + " step " + std::to_string(step);
    EXPECT_NEAR(result.cross_entropy, expected.cross_entropy, 1e-11 * expected.cross_entropy) << where;
    EXPECT_NEAR(result.gradient_norm, expected.gradient_norm, 1e-11 * expected.gradient_norm) << where;
    expect_parameters_close(trainer.buffers(), state.parameters, 1e-11, where);
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace assay::impl::parity
