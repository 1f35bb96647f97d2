// labels: unit property
#include "spec/flops/executed.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "spec/error.hpp"
#include "tests/support/draw_model.hpp"

namespace assay::spec::executed_test {
namespace {

using Kind = AttentionKernel::Kind;
using enum FlopComponent;

template <class Call>
std::string label_of(const Call& call) {
  try {
    call();
  } catch (const SpecError& error) {
    return error.label();
  }
  return "no error";
}

ModelSpec one_head() {
  ModelSpec model;
  model.name = "hand";
  model.vocab = 5, model.width = 4, model.layers = model.heads = model.kv_heads = 1, model.head_dim = 2;
  model.ffn = 6, model.context = 8;
  return model;
}

TEST(ExecutedFlopsSpec, FollowsTheSpecExample) {
  const auto square = executed_flops(one_head(), {3}, {.kind = Kind::square});
  EXPECT_EQ(square.at(attention_scores, ExecutedPass::forward).needed, Count(24));
  EXPECT_EQ(square.at(attention_scores, ExecutedPass::forward).masked_pairs, Count(12));
  EXPECT_EQ(square.at(attention_scores, ExecutedPass::forward).executed(), Count(36));
  const auto tiles =
      executed_flops(one_head(), {3}, {.kind = Kind::tiles, .tile_rows = 12, .column_block = 8});
  EXPECT_EQ(tiles.at(attention_scores, ExecutedPass::forward).padding, Count(60));
  EXPECT_EQ(tiles.at(attention_scores, ExecutedPass::forward).executed(), Count(96));
  EXPECT_EQ(tiles.at(attention_values, ExecutedPass::forward).padding, Count(108));
  EXPECT_EQ(tiles.at(attention_values, ExecutedPass::forward).executed(), Count(144));
}

TEST(ExecutedFlopsSpec, TilesOfTwoDocumentsByHand) {
  // Tokens 0 1 | 2 3 4, tiles of 2 query tokens, no padding: tile 0 sees 0..1, tile 1 (from token 2)
  // sees 2..3, tile 2 sees 2..4: 4 + 4 + 3 = 11 pairs run, 3 + 6 = 9 visible, 15 - 9 = 6 of two documents.
  const auto ran =
      executed_flops(one_head(), {2, 3}, {.kind = Kind::tiles, .tile_rows = 2, .column_block = 1})
          .at(attention_scores, ExecutedPass::forward);
  EXPECT_EQ(ran.needed, Count(2 * 9 * 2));
  EXPECT_EQ(ran.masked_pairs, Count(2 * 2 * 2));
  EXPECT_EQ(ran.skipped_pairs, Count(2 * 6 * 2));
  EXPECT_EQ(ran.padding, Count(0));
}

TEST(ExecutedFlopsSpec, AFusedKernelRunsTheExactCountAndTheScoresAgain) {
  const auto fused = executed_flops(one_head(), {7}, {});
  const auto exact = exact_flops(one_head(), 7);
  EXPECT_EQ(fused.executed(ExecutedPass::forward), exact.of(Pass::forward));
  EXPECT_EQ(fused.executed(ExecutedPass::backward), exact.of(Pass::backward));
  EXPECT_EQ(fused.executed(ExecutedPass::recompute), exact.at(attention_scores, Pass::forward));
}

TEST(ExecutedFlopsSpec, WhatRunsAgainIsThatOfTheSetting) {
  const auto exact = exact_flops(one_head(), 7);
  const auto again = [&](Recompute recompute) {
    return executed_flops(one_head(), {7}, {}, recompute).executed(ExecutedPass::recompute) -
           exact.at(attention_scores, Pass::forward);
  };
  EXPECT_EQ(again(Recompute::none), Count(0));
  EXPECT_EQ(again(Recompute::norms_swiglu), Count(0));
  EXPECT_EQ(again(Recompute::attention),
            exact.at(attention_scores, Pass::forward) + exact.at(attention_values, Pass::forward));
  EXPECT_EQ(again(Recompute::block),
            exact.of(Pass::forward) - exact.at(head, Pass::forward) - exact.at(down, Pass::forward));
  const auto default_setting = executed_flops(one_head(), {7}, {});
  EXPECT_EQ(default_setting.executed(),
            executed_flops(one_head(), {7}, {}, Recompute::norms_swiglu).executed());
}

/// Of latent attention the projections up run again: Cq H E and Ckv H (E - R + W), or D H E of queries that
/// are not compressed, which count as qkv.
TEST(ExecutedFlopsSpec, TheProjectionsUpRunAgainByHand) {
  ModelSpec model = one_head();
  model.head_dim = 3, model.layers = 2;
  const auto again = [&](Recompute recompute, FlopComponent component) {
    return executed_flops(model, {7}, {}, recompute).at(component, ExecutedPass::recompute).needed;
  };
  const auto attention = [&](FlopComponent component) {
    return executed_flops(model, {7}, {}).at(component, ExecutedPass::forward).needed;
  };
  for (const std::int64_t Cq : {5, 0}) {
    model.latent = LatentAttention{.query_rank = Cq, .key_value_rank = 6, .rope_dim = 2, .value_dim = 9};
    const Count compressed = Cq > 0 ? Count(5 * 3) : Count(0), direct = Cq > 0 ? Count(0) : Count(4 * 3);
    for (const Recompute recompute : {Recompute::mla_up, Recompute::attention}) {
      EXPECT_EQ(again(recompute, latent_projections), 2 * 7 * 2 * (compressed + 6 * (1 + 9)));
      EXPECT_EQ(again(recompute, qkv), 2 * 7 * 2 * direct);
    }
    EXPECT_EQ(again(Recompute::norms_swiglu, latent_projections), Count(0));
    EXPECT_EQ(again(Recompute::mla_up, attention_values), Count(0));
    EXPECT_EQ(again(Recompute::attention, attention_values), attention(attention_values));
    EXPECT_EQ(again(Recompute::block, latent_projections), attention(latent_projections));
    EXPECT_EQ(again(Recompute::block, qkv), attention(qkv));
  }
}

TEST(ExecutedFlopsSpec, OfAnExpertAllMatricesButTheLastRunAgain) {
  for (const char* name : {"moe-4b", "deepseek-v3"}) {
    const ModelSpec model = find_model(name);
    const auto ran = executed_flops(model, {5}, {}, Recompute::block);
    for (const FlopComponent experts : {routed_experts, shared_experts})
      EXPECT_EQ(3 * ran.at(experts, ExecutedPass::recompute).needed,
                2 * ran.at(experts, ExecutedPass::forward).needed)
          << name;
    EXPECT_EQ(ran.at(router, ExecutedPass::recompute).needed, ran.at(router, ExecutedPass::forward).needed)
        << name;
  }
}

RC_GTEST_PROP(ExecutedFlopsSpec, NeededAndSkippedPairsAreTheExactCount, ()) {
  const ModelSpec model = tests::draw_described_model();
  const auto length = rc::gen::inRange<std::int64_t>(1, 9);
  auto lengths = *rc::gen::container<std::vector<std::int64_t>>(length);
  lengths.push_back(*length);
  const AttentionKernel kernel{.kind = *rc::gen::element(Kind::fused, Kind::square, Kind::tiles),
                               .tile_rows = *rc::gen::inRange<std::int64_t>(1, 14),
                               .column_block = *rc::gen::inRange<std::int64_t>(1, 17)};
  std::int64_t T = 0;
  for (const std::int64_t each : lengths) T += each;
  const auto ran = executed_flops(model, lengths, kernel);
  const auto exact = exact_flops(model, T);
  for (std::size_t i = 0; i < flop_components; ++i)
    for (const Pass pass : {Pass::forward, Pass::backward}) {
      const auto component = static_cast<FlopComponent>(i);
      const ExecutedCount& item = ran.at(component, static_cast<ExecutedPass>(pass));
      RC_ASSERT(item.needed + item.skipped_pairs == exact.at(component, pass));
      if (component != attention_scores && component != attention_values)
        RC_ASSERT(item.executed() == exact.at(component, pass));
    }
}

RC_GTEST_PROP(ExecutedFlopsSpec, OneTileOverAllTokensIsTheSquare, ()) {
  const ModelSpec model = tests::draw_described_model();
  const auto T = *rc::gen::inRange<std::int64_t>(1, 30);
  const auto tiles = executed_flops(model, {T}, {.kind = Kind::tiles, .tile_rows = T, .column_block = 1});
  RC_ASSERT(tiles.executed() == executed_flops(model, {T}, {.kind = Kind::square}).executed());
  const auto rows = executed_flops(model, {T}, {.kind = Kind::tiles, .tile_rows = 1, .column_block = 1});
  RC_ASSERT(rows.executed() == executed_flops(model, {T}, {}).executed());
}

/// One head of 2 entries, 30 tokens, the last 4 of each: 3 tiles of 12 begin at 0, at token 9 and at
/// token 21.
TEST(ExecutedFlopsSpec, TilesBeginAtTheFirstTokenOfTheWindow) {
  ModelSpec model = one_head();
  model.window = 4;
  const auto seen = [&](const AttentionKernel& kernel) {
    return executed_flops(model, {30}, kernel).at(attention_scores, ExecutedPass::forward);
  };
  const Count flops_of_pair = 2 * 2, visible = flops_of_pair * (1 + 2 + 3 + 27 * 4);
  const ExecutedCount tiles = seen({.kind = Kind::tiles, .tile_rows = 12, .column_block = 1});
  EXPECT_EQ(tiles.needed, visible);
  EXPECT_EQ(tiles.executed(), flops_of_pair * (12 * 12 + 12 * (24 - 9) + 6 * (30 - 21)));
  EXPECT_EQ(tiles.padding, Count(0));
  // From 9 down to 8 and from 21 down to 16; up from 12 to 16, and from 30 to 32.
  const ExecutedCount blocks = seen({.kind = Kind::tiles, .tile_rows = 12, .column_block = 8});
  EXPECT_EQ(blocks.executed(), flops_of_pair * (12 * 16 + 12 * (24 - 8) + 6 * (32 - 16)));
  EXPECT_EQ(blocks.padding, flops_of_pair * (12 * 4 + 6 * 2));
  EXPECT_EQ(seen({}).executed(), visible);
  EXPECT_EQ(seen({.kind = Kind::square}).executed(), flops_of_pair * 900);
}

TEST(ExecutedFlopsSpec, C1RefusesNoAndEmptyDocuments) {
  EXPECT_EQ(label_of([] { executed_flops(one_head(), {}, {}); }), "executed_c1");
  EXPECT_EQ(label_of([] { executed_flops(one_head(), {3, 0}, {}); }), "executed_c1");
}

TEST(ExecutedFlopsSpec, C2RefusesTilesWithoutExtent) {
  const AttentionKernel flat{.kind = Kind::tiles, .tile_rows = 0, .column_block = 8},
      thin{.kind = Kind::tiles, .tile_rows = 12, .column_block = 0};
  EXPECT_EQ(label_of([&] { executed_flops(one_head(), {3}, flat); }), "executed_c2");
  EXPECT_EQ(label_of([&] { executed_flops(one_head(), {3}, thin); }), "executed_c2");
}

}  // namespace
}  // namespace assay::spec::executed_test
