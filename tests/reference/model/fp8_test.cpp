// labels: unit property
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "reference/model/model.hpp"
#include "reference/ops/linear.hpp"
#include "reference/ops/swiglu.hpp"
#include "reference/train_step.hpp"
#include "tests/support/compare.hpp"
#include "tests/support/gradient_check.hpp"
#include "tests/support/model_parameters.hpp"
#include "tests/support/tiny_models.hpp"

// Blocks, models and steps whose linears are in FP8.

namespace assay::reference::fp8_test {
namespace {

using spec::quantise::Recipe;
using tests::Allowed;
using tests::Documents;
using tests::Ignored;
using tests::values;

constexpr Recipe recipes[] = {Recipe::fp8_tensor, Recipe::fp8_block, Recipe::mxfp8};

struct Case {
  explicit Case(const spec::ModelSpec& drawn)
      : model(drawn),
        batch(tests::tiny_batch(model, 2, 4, Documents::packed, Ignored::some, 1)),
        parameters(tests::drawn_parameters(model, 2)),
        x(tests::normal({batch.B, batch.T, model.width}, 3)),
        dy(tests::normal(x.shape(), 4)) {}

  const Tensor<double>& weight(const std::string& name) const {
    return parameters.at("model.layers.0." + name + ".weight");
  }
  block::Forward<double> forward(Recipe recipe) const {
    return block::forward(x, parameters, 0, model, batch, recipe);
  }

  spec::ModelSpec model;
  Batch batch;
  Parameters<double> parameters;
  Tensor<double> x, dy;
};

Tensor<double> stacked(const std::vector<const Tensor<double>*>& matrices) {
  Tensor<double> out({0, matrices.front()->extent(1)});
  for (const Tensor<double>* matrix : matrices) {
    Tensor<double> more({out.extent(0) + matrix->extent(0), out.extent(1)});
    more.flat() << out.flat(), matrix->flat();
    out = more;
  }
  return out;
}

/// Entry `from` + j of each token of y, j < count.
tests::Values part(const Tensor<double>& y, Index from, Index count) {
  tests::Values out{{y.size() / y.extent(-1), count}, {}};
  for (Index n = 0; n < y.size() / y.extent(-1); ++n)
    for (Index j = 0; j < count; ++j) out.data.push_back(y[n * y.extent(-1) + from + j]);
  return out;
}

tests::Values flat(const Tensor<double>& y, Index columns) {
  return values(y.reshaped({y.size() / columns, columns}));
}

TEST(Fp8Reference, QueriesKeysAndValuesShareTheScalesOfTheirStackAndSoDoGateAndUp) {
  for (const Recipe recipe : recipes) {
    Case c(tests::corner_models().front());
    // The values' weight decides a tensor's scale; up's that of gate.
    c.parameters.at("model.layers.0.self_attn.v_proj.weight").flat() *= 1000;
    c.parameters.at("model.layers.0.mlp.up_proj.weight").flat() *= 1000;
    const auto s = c.forward(recipe);
    const Index Q = c.model.heads * c.model.head_dim, KV = c.model.kv_heads * c.model.head_dim,
                F = c.model.ffn;
    const auto qkv = linear::forward(s.input_norm.y,
                                     stacked({&c.weight("self_attn.q_proj"), &c.weight("self_attn.k_proj"),
                                              &c.weight("self_attn.v_proj")}),
                                     recipe);
    ASSAY_EXPECT_CLOSE(flat(s.q, Q), part(qkv, 0, Q), Allowed::exact());
    ASSAY_EXPECT_CLOSE(flat(s.k, KV), part(qkv, Q, KV), Allowed::exact());
    ASSAY_EXPECT_CLOSE(flat(s.v, KV), part(qkv, Q + KV, KV), Allowed::exact());
    const auto gate_up = linear::forward(
        s.post_attention_norm.y, stacked({&c.weight("mlp.gate_proj"), &c.weight("mlp.up_proj")}), recipe);
    ASSAY_EXPECT_CLOSE(flat(s.gate, F), part(gate_up, 0, F), Allowed::exact());
    ASSAY_EXPECT_CLOSE(flat(s.up, F), part(gate_up, F, F), Allowed::exact());

    // One scale for a tensor: the small queries lose bits that they keep on their own.
    const auto alone = linear::forward(s.input_norm.y, c.weight("self_attn.q_proj"), recipe);
    if (recipe == Recipe::fp8_tensor) {
      EXPECT_TRUE((alone.flat() != s.q.flat()).any());
    }
    if (recipe == Recipe::mxfp8) {
      EXPECT_TRUE((alone.flat() == s.q.flat()).all());
    }
  }
}

TEST(Fp8Reference, BackwardStacksTheGradientsOfTheseLinears) {
  for (const Recipe recipe : recipes) {
    Case c(tests::corner_models().front());
    const auto s = c.forward(recipe);
    Parameters<double> gradients;
    block::backward(c.dy, s, c.parameters, 0, c.model, c.batch, gradients, recipe);
    const auto gradient = [&](const std::string& name) {
      return values(gradients.at("model.layers.0." + name + ".weight"));
    };
    const auto down = linear::backward(c.dy, s.activated, c.weight("mlp.down_proj"), recipe);
    ASSAY_EXPECT_CLOSE(gradient("mlp.down_proj"), values(down.dweight), Allowed::exact());
    const auto d = swiglu::backward(down.dx, s.gate, s.up, spec::swiglu::activation_of(c.model.mlp));
    const Index B = c.batch.B, T = c.batch.T, F = c.model.ffn;
    Tensor<double> dgate_up({B, T, 2 * F});
    for (Index n = 0; n < B * T; ++n)
      for (Index f = 0; f < F; ++f) {
        dgate_up[n * 2 * F + f] = d.dgate[n * F + f];
        dgate_up[n * 2 * F + F + f] = d.dup[n * F + f];
      }
    const auto gate_up =
        linear::backward(dgate_up, s.post_attention_norm.y,
                         stacked({&c.weight("mlp.gate_proj"), &c.weight("mlp.up_proj")}), recipe);
    const auto both = gate_up.dweight.reshaped({1, 2 * F * c.model.width});
    ASSAY_EXPECT_CLOSE(flat(gradients.at("model.layers.0.mlp.gate_proj.weight"), F * c.model.width),
                       part(both, 0, F * c.model.width), Allowed::exact());
    ASSAY_EXPECT_CLOSE(flat(gradients.at("model.layers.0.mlp.up_proj.weight"), F * c.model.width),
                       part(both, F * c.model.width, F * c.model.width), Allowed::exact());
  }
}

TEST(Fp8Reference, EachLinearOfLatentAttentionHasScalesOfItsOwn) {
  for (const Recipe recipe : recipes) {
    SCOPED_TRACE(to_string(recipe));
    Case c(tests::latent_models().front());
    // In one GEMM with keys and values, the queries would take the scale of these.
    c.parameters.at("model.layers.0.self_attn.kv_a_proj_with_mqa.weight").flat() *= 1000;
    const auto s = c.forward(recipe);
    const auto& a = s.latent;
    const Index Ckv = c.model.latent->key_value_rank, R = c.model.latent->rope_dim, E = c.model.head_dim,
                W = c.model.latent->value_dim;
    ASSAY_EXPECT_CLOSE(values(a.query_compressed),
                       values(linear::forward(s.input_norm.y, c.weight("self_attn.q_a_proj"), recipe)),
                       Allowed::exact());
    const auto down = linear::forward(s.input_norm.y, c.weight("self_attn.kv_a_proj_with_mqa"), recipe);
    ASSAY_EXPECT_CLOSE(flat(a.key_value_compressed, Ckv), part(down, 0, Ckv), Allowed::exact());
    const auto heads = linear::forward(a.query_norm.y, c.weight("self_attn.q_b_proj"), recipe);
    ASSAY_EXPECT_CLOSE(part(a.q, 0, E - R), part(heads.reshaped(a.q.shape()), 0, E - R), Allowed::exact());
    const auto up = linear::forward(a.key_value_norm.y, c.weight("self_attn.kv_b_proj"), recipe)
                        .reshaped({c.batch.B, c.batch.T, c.model.heads, E - R + W});
    ASSAY_EXPECT_CLOSE(part(a.k, 0, E - R), part(up, 0, E - R), Allowed::exact());
    ASSAY_EXPECT_CLOSE(flat(a.v, W), part(up, E - R, W), Allowed::exact());

    // Backward: what the output projection hands on is in FP8, and so is each linear behind it.
    Parameters<double> gradients;
    block::backward(c.dy, s, c.parameters, 0, c.model, c.batch, gradients, recipe);
    Parameters<double> exact;
    block::backward(c.dy, s, c.parameters, 0, c.model, c.batch, exact);
    for (const char* name : {"q_a_proj", "q_b_proj", "kv_a_proj_with_mqa", "kv_b_proj", "o_proj"}) {
      const auto of = [&](const Parameters<double>& all) {
        return all.at(std::string("model.layers.0.self_attn.") + name + ".weight").flat();
      };
      EXPECT_TRUE((of(gradients) != of(exact)).any()) << name;
    }
  }
}

TEST(Fp8Reference, TheResidualAndABlocksBiasesAreNotQuantised) {
  for (const auto& model : tests::corner_models()) {
    for (const Recipe recipe : recipes) {
      Case c(model);
      if (model.qkv_bias) {
        c.parameters.at("model.layers.0.self_attn.v_proj.weight").flat() = 0;
        const auto s = c.forward(recipe);
        const auto bias = c.parameters.at("model.layers.0.self_attn.v_proj.bias");
        for (Index i = 0; i < s.v.size(); ++i) EXPECT_EQ(s.v[i], bias[i % bias.size()]);
      }
      c.parameters.at("model.layers.0.self_attn.o_proj.weight").flat() = 0;
      c.parameters.at("model.layers.0.mlp.down_proj.weight").flat() = 0;
      ASSAY_EXPECT_CLOSE(values(c.forward(recipe).y), values(c.x), Allowed::exact());
      Parameters<double> gradients;
      const auto dx =
          block::backward(c.dy, c.forward(recipe), c.parameters, 0, c.model, c.batch, gradients, recipe);
      ASSAY_EXPECT_CLOSE(values(dx), values(c.dy), Allowed::exact());
    }
  }
}

RC_GTEST_PROP(Fp8Reference, NoRecipeIsTheStepAsItWas, (std::uint64_t seed)) {
  const auto model = tests::tiny_model(seed);
  const auto parameters = tests::drawn_parameters(model, seed);
  const auto batch = tests::tiny_batch(model, seed);
  const auto plain = step_gradients(parameters, model, {batch}, 1e-3);
  const auto none =
      step_gradients(parameters, model, {batch}, 1e-3,
                     {std::vector<Recipe>(static_cast<std::size_t>(model.layers), Recipe::none)});
  RC_ASSERT(none.cross_entropy == plain.cross_entropy);
  RC_ASSERT(tests::joined(none.gradients).data == tests::joined(plain.gradients).data);
}

/// A model of three blocks.
spec::ModelSpec three_blocks() {
  auto model = tests::corner_models().front();
  model.layers = 3;
  return model;
}

TEST(Fp8Reference, OnlyTheBlocksNamedAreQuantised) {
  const auto model = three_blocks();
  const auto parameters = tests::drawn_parameters(model, 1, 0.2);
  const auto batch = tests::tiny_batch(model, 2, 5, Documents::whole, Ignored::none, 2);
  const model::Loss loss{.normalizer = static_cast<double>(batch.valid_tokens())};
  const auto plain = model::forward(parameters, model, batch, loss);
  for (const Recipe recipe : recipes) {
    const Recipes middle{{Recipe::none, recipe}};
    const auto fp8 = model::forward(parameters, model, batch, loss, middle);
    ASSAY_EXPECT_CLOSE(values(fp8.blocks[0].y), values(plain.blocks[0].y), Allowed::exact());
    ASSAY_EXPECT_CLOSE(values(fp8.blocks[1].input_norm.y), values(plain.blocks[1].input_norm.y),
                       Allowed::exact());
    EXPECT_TRUE((fp8.blocks[1].q.flat() != plain.blocks[1].q.flat()).any());
    // Block 2 and the head are as they were, of another input.
    const auto last = block::forward(fp8.blocks[1].y, parameters, 2, model, batch);
    ASSAY_EXPECT_CLOSE(values(fp8.blocks[2].y), values(last.y), Allowed::exact());
    ASSAY_EXPECT_CLOSE(values(fp8.logits),
                       values(linear::forward(fp8.final_norm.y, parameters.at("lm_head.weight"))),
                       Allowed::exact());
  }
}

TEST(Fp8Reference, WhatFollowsTheLastQuantisedBlockHasExactGradients) {
  // Central differences are not defined through a rounding; behind it they are: blocks 1 and 2, final norm,
  // head.
  const auto model = three_blocks();
  auto parameters = tests::drawn_parameters(model, 3, 0.3);
  const auto batch = tests::tiny_batch(model, 1, 5, Documents::whole, Ignored::none, 4);
  const model::Loss loss{.normalizer = static_cast<double>(batch.valid_tokens())};
  for (const Recipe recipe : recipes) {
    const Recipes first{{recipe}};
    const auto gradients = model::backward(model::forward(parameters, model, batch, loss, first), parameters,
                                           model, batch, loss, first);
    for (const char* name :
         {"model.layers.1.self_attn.q_proj.weight", "model.layers.1.mlp.down_proj.weight",
          "model.layers.2.input_layernorm.weight", "model.norm.weight", "lm_head.weight"}) {
      SCOPED_TRACE(name);
      const auto at = parameters.at(name);
      const auto expected = tests::central_difference(
          [&](const Tensor<double>& moved) {
            parameters.at(name) = moved;
            return model::forward(parameters, model, batch, loss, first).loss.loss;
          },
          at);
      parameters.at(name) = at;
      ASSAY_EXPECT_CLOSE(values(gradients.at(name)), expected, Allowed::relative(1e-7));
    }
  }
}

TEST(Fp8Reference, AStepInFp8IsAnotherStepAndStillFitsABatch) {
  const auto model = tests::corner_models().front();
  const auto batch = tests::tiny_batch(model, 2, 6, Documents::packed, Ignored::some, 4);
  for (const Recipe recipe : recipes) {
    const Recipes all{std::vector<Recipe>(static_cast<std::size_t>(model.layers), recipe)};
    auto state = initial_state(model, 5), plain = state;
    std::vector<double> losses;
    losses.reserve(60);
    for (int step = 0; step < 60; ++step)
      losses.push_back(train_step(state, model, {batch}, {}, 2e-2, all).cross_entropy);
    EXPECT_NE(losses.front(), train_step(plain, model, {batch}, {}, 2e-2).cross_entropy);
    EXPECT_LT(losses.back(), 0.5 * losses.front()) << to_string(recipe);
  }
}

}  // namespace
}  // namespace assay::reference::fp8_test
