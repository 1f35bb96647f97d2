// labels: unit property
#include "spec/parallel/placement.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "spec/model/trainable.hpp"
#include "spec/parallel/parameter_sets.hpp"
#include "tests/support/label_of.hpp"

namespace assay::spec::placement_test {
namespace {

ModelSpec example() {
  return {.name = "example",
          .family = Family::qwen3,
          .vocab = 1001,
          .width = 512,
          .layers = 2,
          .heads = 8,
          .kv_heads = 2,
          .head_dim = 64,
          .ffn = 96,
          .context = 32,
          .qk_norm = true};
}

/// Of each parameter of a tensor rank.
std::vector<Placement> placements(const ModelSpec& model, std::int64_t ranks, std::int64_t rank) {
  return share(model, {.tensor_ranks = ranks, .rank = rank}).sets.at(0).placements;
}

const Placement& of(const std::vector<Placement>& all, const std::string& name) {
  const Inventory whole = inventory(example());
  return *std::find_if(all.begin(), all.end(),
                       [&](const Placement& p) { return whole.parameters.at(p.number).name == name; });
}

TEST(PlacementSpec, FollowsTheSpecExample) {
  for (const std::int64_t rank : {0, 1, 2, 3}) {
    const auto all = placements(example(), 4, rank);
    const Placement &key = of(all, "model.layers.1.self_attn.k_proj.weight"),
                    &head = of(all, "lm_head.weight"), &gain = of(all, "model.norm.weight"),
                    &down = of(all, "model.layers.0.mlp.down_proj.weight"),
                    &k_gain = of(all, "model.layers.0.self_attn.k_norm.weight");
    EXPECT_EQ(key.begin, rank / 2 * 64);
    EXPECT_EQ(key.count, 64);
    EXPECT_EQ(key.holders, 2);
    EXPECT_EQ(key.holder, rank % 2);
    EXPECT_EQ(head.begin, rank * 251);
    EXPECT_EQ(head.count, rank == 3 ? 248 : 251);
    EXPECT_FALSE(head.shared()) << "padding is no copy";
    EXPECT_EQ(down.dimension, 1);
    EXPECT_EQ(down.begin, rank * 24);
    for (const Placement* each : {&gain, &k_gain}) {
      EXPECT_EQ(each->dimension, -1);
      EXPECT_EQ(each->holders, 4);
      EXPECT_EQ(each->holder, rank);
    }
  }
  const ModelSpec own = tensor_model(example(), 4);
  EXPECT_EQ(own.heads, 2);
  EXPECT_EQ(own.kv_heads, 1);
  EXPECT_EQ(own.ffn, 24);
  EXPECT_EQ(own.vocab, 251);
  EXPECT_EQ(own.width, 512);
}

TEST(PlacementSpec, OneRankHoldsTheModelItself) {
  EXPECT_EQ(tensor_model(example(), 1), example());
  for (const Placement& each : placements(example(), 1, 0)) {
    EXPECT_EQ(each.dimension, -1);
    EXPECT_FALSE(each.shared());
  }
}

RC_GTEST_PROP(PlacementSpec, EveryEntryIsHeldByAsManyRanksAsItSays, ()) {
  ModelSpec model = example();
  const auto t = *rc::gen::inRange<std::int64_t>(1, 9);
  model.kv_heads = *rc::gen::element<std::int64_t>(1, t, 2 * t);
  model.heads = model.kv_heads * t;
  model.ffn = t * *rc::gen::inRange<std::int64_t>(1, 5);
  model.vocab = *rc::gen::inRange<std::int64_t>(t, t + 40);
  model.qkv_bias = *rc::gen::arbitrary<bool>();
  model.tied_embeddings = *rc::gen::arbitrary<bool>();
  std::vector<std::vector<Placement>> ranks;
  for (std::int64_t rank = 0; rank < t; ++rank) ranks.push_back(placements(model, t, rank));
  const Inventory whole = inventory(model);
  for (std::size_t i = 0; i < ranks[0].size(); ++i) {
    const Placement& first = ranks[0][i];
    const std::int64_t extent =
        first.dimension < 0 ? 1
                            : whole.parameters[first.number].shape[static_cast<std::size_t>(first.dimension)];
    std::vector<std::int64_t> held(static_cast<std::size_t>(extent)), counted(held);
    for (const std::vector<Placement>& all : ranks) {
      const std::int64_t begin = first.dimension < 0 ? 0 : all[i].begin,
                         count = first.dimension < 0 ? 1 : all[i].count;
      for (std::int64_t entry = begin; entry < begin + count; ++entry) {
        ++held[static_cast<std::size_t>(entry)];
        counted[static_cast<std::size_t>(entry)] += all[i].holder == 0;
      }
    }
    for (const std::int64_t number : held) RC_ASSERT(number == first.holders);
    for (const std::int64_t number : counted) RC_ASSERT(number == 1);
  }
}

TEST(PlacementSpec, RefusesWhatDoesNotDivide) {
  const auto label = [](const ModelSpec& model, std::int64_t t, std::int64_t tokens) {
    return tests::label_of([&] { check_tensor_ranks(model, t, tokens); });
  };
  EXPECT_EQ(label(example(), 0, 8), "placement_c1");
  EXPECT_EQ(label(example(), 3, 9), "placement_c2");
  EXPECT_EQ(label(example(), 4, 8), "accepted");
  EXPECT_EQ(label(example(), 4, 6), "placement_c6");
  ModelSpec model = example();
  model.kv_heads = 8, model.heads = 24;
  EXPECT_EQ(label(model, 12, 12), "placement_c3");
  model = example(), model.ffn = 98;
  EXPECT_EQ(label(model, 4, 8), "placement_c4");
  model = example(), model.vocab = 3;
  EXPECT_EQ(label(model, 4, 8), "placement_c5");
  model = example(), model.output_bias = true;
  EXPECT_EQ(label(model, 4, 8), "placement_c7");
  model = example(), model.qk_norm_across_heads = true;
  EXPECT_EQ(label(model, 4, 8), "placement_c8");
  EXPECT_EQ(label(model, 1, 8), "accepted");
  model = example(), model.experts = Experts{.count = 4, .active = 2, .width = 8};
  EXPECT_EQ(label(model, 4, 8), "accepted");
  model.ffn = 98;
  EXPECT_EQ(label(model, 4, 8), "accepted") << "no layer has a dense MLP";
  model.experts->first_dense = 1;
  EXPECT_EQ(label(model, 4, 8), "placement_c4");
  model = example();
  model.latent = LatentAttention{.key_value_rank = 4, .rope_dim = 2, .value_dim = 3};
  EXPECT_EQ(label(model, 4, 8), "placement_c20");
  EXPECT_EQ(label(model, 1, 8), "accepted");
  EXPECT_EQ(tests::label_of([] { placements(example(), 4, 4); }), "mesh_c3");
}

}  // namespace
}  // namespace assay::spec::placement_test
