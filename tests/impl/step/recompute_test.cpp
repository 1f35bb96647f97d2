// labels: unit property
// Whatever is kept of forward and whatever backward computes again, a step's numbers are the same to the bit,
// and what is said to be kept is what backward reads.
#include "spec/model/recompute.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "impl/model/tensor_ops.hpp"
#include "tests/impl/step_runner.hpp"
#include "tests/support/tensors.hpp"
#include "tests/support/tiny_models.hpp"

namespace assay::impl::recompute_test {
namespace {

using spec::Recompute;

run::StepSettings settings() {
  return {
      .adamw = {.beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .weight_decay = 0.1}, .clip = 1, .z_loss = 1e-3};
}

/// What two steps leave behind.
struct Trained {
  std::vector<double> numbers;  ///< losses and norms
  at::Tensor gradients, weights, moment;
};

Trained train(const spec::ModelSpec& model, Dtype dtype, const reference::Batch& batch, std::int64_t micro,
              Recompute recompute) {
  const auto communicator = make_self_communicator();
  tests::StepRunner trainer(model, dtype, at::kCPU, *communicator, settings(), 1, recompute);
  Trained out;
  for (int step = 0; step < 2; ++step) {
    const auto result =
        trainer.step(tests::micro_batches(batch, micro), static_cast<double>(batch.valid_tokens()), 3e-3);
    out.numbers.insert(out.numbers.end(), {result.cross_entropy, result.z_loss, result.gradient_norm});
  }
  out.gradients = trainer.buffers().gradients.clone();
  out.weights = trainer.buffers().master.clone();
  out.moment = trainer.buffers().moment2.clone();
  return out;
}

RC_GTEST_PROP(RecomputeImpl, EverySettingGivesTheSameBits, ()) {
  const auto seed = *rc::gen::inRange<std::uint64_t>(0, 1u << 30);
  const spec::ModelSpec model = seed % 3 == 0   ? tests::latent_model(seed)
                                : seed % 2 == 1 ? tests::routed_model(seed)
                                                : tests::tiny_model(seed);
  const reference::Batch batch = tests::tiny_batch(model, seed);
  const auto micro = *rc::gen::inRange<std::int64_t>(1, batch.B + 1);
  const auto dtype = *rc::gen::element(Dtype::f64, Dtype::f32, Dtype::bf16);
  const Trained all_kept = train(model, dtype, batch, micro, Recompute::none);
  for (const Recompute recompute :
       {Recompute::norms_swiglu, Recompute::mla_up, Recompute::attention, Recompute::block}) {
    RC_LOG() << to_string(recompute) << " " << tests::describe(model) << " " << tests::describe(batch)
             << "\n";
    const Trained again = train(model, dtype, batch, micro, recompute);
    RC_ASSERT(again.numbers == all_kept.numbers);
    RC_ASSERT(at::equal(again.gradients, all_kept.gradients));
    RC_ASSERT(at::equal(again.weights, all_kept.weights));
    RC_ASSERT(at::equal(again.moment, all_kept.moment));
  }
}

spec::ModelSpec normed_model(bool qk_norm) {
  spec::ModelSpec model = tests::tiny_model(3);
  model.qk_norm = qk_norm, model.qk_norm_across_heads = false;
  return model;
}

/// One decoder block with drawn weights, forward run and its gradients' buffer at zero.
struct Block {
  explicit Block(Recompute recompute, bool qk_norm = true) : Block(recompute, normed_model(qk_norm)) {}
  Block(Recompute recompute, const spec::ModelSpec& of)
      : model(of), buffers(allocate(model, Dtype::f64, at::kCPU)) {
    initialise(buffers, model, 5);
    batch.B = 2, batch.T = 5;
    table = rope::table(std::vector<double>(static_cast<std::size_t>(model.rope_dim() / 2), 0.5), batch.T,
                        at::kDouble, at::kCPU);
    x = tests::normal({batch.B * batch.T, model.width}, 7, at::kDouble);
    TensorOps ops = make_ops();
    spec::step::ResidualStream<TensorOps> stream{x, {}};
    spec::step::decoder_forward(ops, stream, weights(), recompute, saved);
  }
  TensorOps make_ops() const { return TensorOps({.model = model, .rope_table = table, .batch = batch}); }
  spec::step::DecoderWeights<TensorOps> weights() const {
    return spec::step::convert(
               views(buffers.weights, buffers.inventory, model, 1),
               [](const at::Tensor& matrix) { return TensorOps::Weight{matrix}; },
               [](const at::Tensor& vector) { return vector; })
        .decoder;
  }
  DecoderViews gradients() const { return views(buffers.gradients, buffers.inventory, model, 1).decoder; }
  void backward() {
    const BlockViews whole = views(buffers.gradients, buffers.inventory, model, 1);
    const auto into = spec::step::convert(
        whole, [](const at::Tensor& matrix) { return TensorOps::Gradient{matrix}; },
        [](const at::Tensor& vector) { return vector; });
    TensorOps ops = make_ops();
    at::Tensor dx = at::ones_like(x);
    auto upstream = spec::step::begin_upstream(ops, 1, dx, saved);
    spec::step::decoder_backward(ops, 1, std::move(dx), std::move(upstream), weights(), into.decoder,
                                 std::move(saved));
  }

  spec::ModelSpec model;
  ParameterBuffers buffers;
  TokenBatch batch;
  rope::Table table;
  at::Tensor x;
  BlockActivations saved;
};

/// The names of spec/model/recompute.md that are there.
std::string kept(const BlockActivations& saved) {
  std::string names;
  const auto name = [&](const char* text, const auto& tensor) {
    if (tensor.defined()) names += std::string(text) + " ";
  };
  name("x", saved.x), name("normed", saved.normed), name("rstd", saved.rstd);
  name("qkv_raw", saved.qkv_raw), name("qk_rstd", saved.qk_rstd), name("qkv", saved.qkv);
  name("y", saved.attention.forward.y), name("lse", saved.attention.forward.lse), name("x_mid", saved.x_mid);
  name("normed_mid", saved.normed_mid), name("rstd_mid", saved.rstd_mid), name("gate_up", saved.gate_up);
  name("gated", saved.gated);
  name("query_down", saved.query_down), name("query_normed", saved.query_normed);
  name("query_rstd", saved.query_rstd), name("key_value_down", saved.key_value_down);
  name("key_value_normed", saved.key_value_normed), name("key_value_rstd", saved.key_value_rstd);
  name("shared_key", saved.shared_key);
  return names;
}

TEST(RecomputeImpl, ForwardKeepsWhatThePageSays) {
  EXPECT_EQ(kept(Block(Recompute::none).saved),
            "x normed rstd qkv_raw qk_rstd qkv y lse x_mid normed_mid rstd_mid gate_up gated ");
  EXPECT_EQ(kept(Block(Recompute::none, false).saved),
            "x normed rstd qkv y lse x_mid normed_mid rstd_mid gate_up gated ");
  EXPECT_EQ(kept(Block(Recompute::norms_swiglu).saved),
            "x rstd qkv_raw qk_rstd qkv y lse x_mid rstd_mid gate_up ");
  EXPECT_EQ(kept(Block(Recompute::attention).saved), "x rstd qkv_raw qk_rstd qkv x_mid rstd_mid gate_up ");
  EXPECT_EQ(kept(Block(Recompute::block).saved), "x ");
}

TEST(RecomputeImpl, LatentAttentionKeepsWhatThePageSays) {
  const spec::ModelSpec compressed = tests::latent_models()[0], direct = tests::latent_models()[1];
  const std::string latents = "query_down query_rstd key_value_down key_value_rstd shared_key ";
  EXPECT_EQ(kept(Block(Recompute::none, compressed).saved),
            "x normed rstd qkv y lse x_mid normed_mid rstd_mid gate_up gated query_down query_normed "
            "query_rstd key_value_down key_value_normed key_value_rstd shared_key ");
  EXPECT_EQ(kept(Block(Recompute::none, direct).saved),
            "x normed rstd qkv y lse x_mid normed_mid rstd_mid gate_up gated key_value_down "
            "key_value_normed key_value_rstd shared_key ");
  EXPECT_EQ(kept(Block(Recompute::norms_swiglu, compressed).saved),
            "x rstd qkv y lse x_mid rstd_mid gate_up " + latents);
  EXPECT_EQ(kept(Block(Recompute::mla_up, compressed).saved),
            "x rstd y lse x_mid rstd_mid gate_up " + latents);
  EXPECT_EQ(kept(Block(Recompute::attention, compressed).saved), "x rstd x_mid rstd_mid gate_up " + latents);
  EXPECT_EQ(kept(Block(Recompute::block, compressed).saved), "x ");
}

TEST(RecomputeImpl, WhatIsKeptIsReadAndNotComputedAgain) {
  const auto gradient_is_zero = [](TensorOps::Operand BlockActivations::*value,
                                   at::Tensor DecoderViews::*weight,
                                   const spec::ModelSpec& model = normed_model(true)) {
    Block block(Recompute::none, model);
    (block.saved.*value).value.zero_();
    block.backward();
    return at::equal(block.gradients().*weight, at::zeros_like(block.gradients().*weight));
  };
  EXPECT_TRUE(gradient_is_zero(&BlockActivations::normed, &DecoderViews::qkv));
  EXPECT_TRUE(gradient_is_zero(&BlockActivations::normed_mid, &DecoderViews::gate_up));
  EXPECT_TRUE(gradient_is_zero(&BlockActivations::gated, &DecoderViews::down));
  EXPECT_FALSE(gradient_is_zero(&BlockActivations::gated, &DecoderViews::qkv));
  const spec::ModelSpec latent = tests::latent_models()[0];
  EXPECT_TRUE(gradient_is_zero(&BlockActivations::normed, &DecoderViews::query_down, latent));
  EXPECT_TRUE(gradient_is_zero(&BlockActivations::normed, &DecoderViews::key_value_down, latent));
  EXPECT_TRUE(gradient_is_zero(&BlockActivations::query_normed, &DecoderViews::query_up, latent));
  EXPECT_TRUE(gradient_is_zero(&BlockActivations::key_value_normed, &DecoderViews::key_value_up, latent));
}

}  // namespace
}  // namespace assay::impl::recompute_test
