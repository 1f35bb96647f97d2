// labels: unit property
#include "spec/config/division.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <regex>
#include <string>

#include "spec/error.hpp"
#include "tests/support/label_of.hpp"

namespace assay::spec::division_test {
namespace {

/// 8 query heads, 2 key and value heads.
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
          .context = 64,
          .qk_norm = true};
}

RunConfig asked(std::int64_t tensor, DataParallel data = DataParallel::replicate,
                std::int64_t shard_ranks = 0, std::int64_t sequences = 32) {
  RunConfig config;
  config.tensor_ranks = tensor, config.data_parallel = data, config.shard_ranks = shard_ranks;
  config.sequences = sequences, config.sequence_length = 48;
  return config;
}

std::string refusal(const RunConfig& config, const RunRanks& ranks) {
  try {
    divide(config, example(), ranks);
  } catch (const SpecError& error) {
    return error.what();
  }
  return "accepted";
}
std::string refusal(const RunConfig& config, std::int64_t ranks) { return refusal(config, {ranks, ranks}); }

TEST(DivisionSpec, RanksAreDataRanksOfTensorRanks) {
  const auto [batch, layout] = divide(asked(2, DataParallel::hybrid, 2), example(), {8, 8});
  EXPECT_EQ(batch.ranks, 4);
  EXPECT_EQ(layout, (Layout{DataParallel::hybrid, 4, 2}));
  EXPECT_EQ(layout_on(asked(2, DataParallel::hybrid), {16, 8}).shard_ranks, 4) << "those of a host";
}

TEST(DivisionSpec, C13NamesDegreesThatModelAndBatchAllow) {
  // 2 divides the 6 ranks, and leaves 3 data ranks, which the 32 sequences are no multiple of.
  EXPECT_EQ(refusal(asked(4), 6),
            "config_c13: parallel.tensor = 4 does not divide the 6 ranks; this run has 6 ranks: start 4 or 8 "
            "ranks");
  // 3 and 6 divide the 12 ranks, but not the 8 heads.
  EXPECT_EQ(refusal(asked(8, DataParallel::replicate, 0, 12), 12),
            "config_c13: parallel.tensor = 8 does not divide the 12 ranks; this run has 12 ranks: set "
            "parallel.tensor to 4, or start 8 or 16 ranks");
  EXPECT_EQ(refusal(asked(2), 1),
            "config_c13: parallel.tensor = 2 does not divide the 1 rank; this run has 1 rank: set "
            "parallel.tensor to 1, or start 2 ranks");
}

TEST(DivisionSpec, ShardGroupsAreOfDataRanks) {
  EXPECT_EQ(
      refusal(asked(4, DataParallel::hybrid, 4), 8),
      "data_layout_c2: parallel.shard_ranks = 4 does not divide the 2 data-parallel ranks; this run has "
      "8 ranks (2 data-parallel ranks of 4 tensor ranks): set parallel.shard_ranks to 2, or "
      "parallel.tensor to 2, or start 16 ranks");
  EXPECT_EQ(
      refusal(asked(1, DataParallel::hybrid, 3), 8),
      "data_layout_c2: parallel.shard_ranks = 3 does not divide the 8 data-parallel ranks; this run has "
      "8 ranks: set parallel.shard_ranks to 2 or 4");
}

TEST(DivisionSpec, C14IsOfHosts) {
  // On hosts of 6 ranks no data-parallel rank of 4 is whole; of 12 ranks 3 are.
  EXPECT_EQ(
      refusal(asked(4, DataParallel::hybrid, 0, 12), {12, 6}),
      "config_c14: parallel.data = \"hybrid\" takes the data-parallel ranks of a host for a shard group, "
      "and parallel.tensor = 4 does not divide the 6 ranks of a host; this run has 12 ranks (3 "
      "data-parallel ranks of 4 tensor ranks): set parallel.shard_ranks to 1 or 3, or parallel.tensor to "
      "2");
  EXPECT_EQ(
      refusal(asked(1, DataParallel::hybrid), {4, 0}),
      "data_layout_c3: parallel.data = \"hybrid\" shards within a host unless parallel.shard_ranks says "
      "otherwise, but the hosts have different numbers of ranks; this run has 4 ranks: set "
      "parallel.shard_ranks to 1 or 2");
}

TEST(DivisionSpec, ARefusedPlacementNamesFieldValueRanksAndDegrees) {
  ModelSpec model = example();
  model.kv_heads = 8, model.heads = 24;
  RunConfig config = asked(12, DataParallel::replicate, 0, 24);
  try {
    divide(config, model, {24, 24});
    FAIL();
  } catch (const SpecError& error) {
    EXPECT_STREQ(error.what(),
                 "placement_c3: parallel.tensor = 12 does not divide the 8 key and value heads, and is no "
                 "multiple of them; this run has 24 ranks (2 data-parallel ranks of 12 tensor ranks): set "
                 "parallel.tensor to 8 or 24");
  }
  config = asked(4, DataParallel::replicate, 0, 4);
  config.sequence_length = 18;  // 2 tensor ranks would leave 8 data-parallel ranks, more than sequences
  EXPECT_EQ(
      refusal(config, 16),
      "placement_c6: parallel.tensor = 4 does not divide the 18 tokens of a micro-batch (batch.micro x "
      "batch.sequence_length), whose residual stream the tensor ranks hold in equal parts; this run has "
      "16 ranks (4 data-parallel ranks of 4 tensor ranks): start 8 ranks");
}

TEST(DivisionSpec, WhereNoDegreeHoldsRanksAreNamed) {
  EXPECT_EQ(refusal(asked(3, DataParallel::replicate, 0, 4), 3),
            "placement_c2: parallel.tensor = 3 does not divide the 8 query heads; this run has 3 ranks (1 "
            "data-parallel rank of 3 tensor ranks): start 2 or 4 ranks without parallel.tensor");
}

/// A degree of experts that model or ranks do not allow, with the nearest that they do.
TEST(DivisionSpec, ExpertRanksThatDoNotDivideAreRefusedWithTheNearest) {
  ModelSpec model = example();
  model.family = Family::qwen3_moe;
  model.experts = Experts{.count = 12, .active = 2, .width = 8};
  const auto text = [&](std::int64_t expert, std::int64_t ranks, DataParallel data = DataParallel::replicate,
                        std::int64_t shard_ranks = 0, std::int64_t tensor = 1) {
    RunConfig config = asked(tensor, data, shard_ranks);
    config.expert_ranks = expert;
    try {
      divide(config, model, {ranks, ranks});
    } catch (const SpecError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_EQ(text(4, 8), "accepted");
  EXPECT_EQ(text(5, 8),
            "placement_c12: parallel.expert = 5 does not divide the 12 experts of a layer; this run has 8 "
            "ranks: set parallel.expert to 4");
  EXPECT_EQ(text(3, 8),
            "placement_c13: parallel.expert = 3 does not divide the 8 data-parallel ranks; this run has 8 "
            "ranks: set parallel.expert to 2 or 4");
  EXPECT_EQ(text(4, 16, DataParallel::replicate, 0, 2), "accepted");
  RunConfig halves = asked(2);
  halves.micro = 1;
  try {
    divide(halves, model, {8, 8});
    FAIL();
  } catch (const SpecError& error) {
    EXPECT_STREQ(
        error.what(),
        "placement_c14: parallel.tensor = 2 does not divide the 1 sequence of a micro-batch "
        "(batch.micro), of which each tensor rank routes whole ones to experts; this run has 8 ranks "
        "(4 data-parallel ranks of 2 tensor ranks): set batch.micro to 2, or parallel.tensor to 1");
  }
  EXPECT_EQ(
      text(4, 64, DataParallel::replicate, 0, 2),
      "placement_c14: parallel.tensor = 2 does not divide the 1 sequence of a micro-batch (batch.micro), of "
      "which each tensor rank routes whole ones to experts; this run has 64 ranks (32 data-parallel ranks "
      "of 2 tensor ranks): start 32 ranks");
  EXPECT_NE(text(4, 8, DataParallel::hybrid, 2).find("placement_c13"), std::string::npos);
  EXPECT_NE(
      text(4, 8, DataParallel::hybrid, 2).find("set parallel.shard_ranks to 1 or 4, or parallel.expert to 2"),
      std::string::npos)
      << text(4, 8, DataParallel::hybrid, 2);
}

RC_GTEST_PROP(DivisionSpec, WhatARefusalNamesIsAccepted, ()) {
  const auto tensor = *rc::gen::inRange<std::int64_t>(1, 10),
             per_host = *rc::gen::inRange<std::int64_t>(1, 13);
  const auto data = *rc::gen::element(DataParallel::replicate, DataParallel::shard, DataParallel::hybrid);
  const auto shard_ranks =
      data == DataParallel::hybrid ? *rc::gen::inRange<std::int64_t>(0, 9) : std::int64_t{0};
  RunConfig config = asked(tensor, data, shard_ranks, *rc::gen::inRange<std::int64_t>(1, 49));
  config.sequence_length = *rc::gen::inRange<std::int64_t>(1, 49);
  const RunRanks ranks{per_host * *rc::gen::inRange<std::int64_t>(1, 4), per_host};
  std::string text;
  try {
    divide(config, example(), ranks);
    return;
  } catch (const UserError&) {
    return;  // of the batch, which names batches
  } catch (const SpecError& error) {
    text = error.what();
  }
  RC_LOG() << text << "\n";
  const auto each = [&](const char* before, auto&& change) {
    std::smatch found;
    if (!std::regex_search(text, found, std::regex(std::string(before) + "(\\d+)(?: or (\\d+))?"))) return;
    for (const std::size_t i : {1u, 2u}) {
      if (!found[i].matched) continue;
      RunConfig other = config;
      RunRanks of = ranks;
      change(other, of, std::stoll(found[i]));
      divide(other, example(), of);
    }
  };
  const bool both = text.find(" and parallel.shard_ranks to ") != std::string::npos;
  const bool without = text.find("without parallel.tensor") != std::string::npos;
  if (both) {
    std::smatch pair;
    RC_ASSERT(
        std::regex_search(text, pair, std::regex("tensor to (\\d+) and parallel.shard_ranks to (\\d+)")));
    config.tensor_ranks = std::stoll(pair[1]), config.shard_ranks = std::stoll(pair[2]);
    divide(config, example(), ranks);
    return;
  }
  each("parallel.shard_ranks to ", [](RunConfig& c, RunRanks&, std::int64_t n) { c.shard_ranks = n; });
  each("parallel.tensor to ", [](RunConfig& c, RunRanks&, std::int64_t n) { c.tensor_ranks = n; });
  each("start ", [&](RunConfig& c, RunRanks& r, std::int64_t n) {
    r = {n, ranks.per_host == ranks.all ? n : per_host};
    if (without) c.tensor_ranks = 1, c.shard_ranks = 0;
  });
}

}  // namespace
}  // namespace assay::spec::division_test
