// labels: unit property
#include "spec/config/division.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <string>

#include "spec/batch/nearest_batch.hpp"
#include "spec/config/check.hpp"
#include "spec/config/keys.hpp"
#include "spec/error.hpp"
#include "spec/plan/plan.hpp"
#include "tests/support/advice.hpp"
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
  } catch (const UserError& error) {  // of the batch
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

TEST(DivisionSpec, WhereNoChangeIsEnoughSeveralAreNamed) {
  // 2 and 4 are tensor ranks of 8 heads, and of 2 and 4 ranks.
  EXPECT_EQ(refusal(asked(3, DataParallel::replicate, 0, 4), 3),
            "placement_c2: parallel.tensor = 3 does not divide the 8 query heads; this run has 3 ranks (1 "
            "data-parallel rank of 3 tensor ranks): start 4 ranks with parallel.tensor=4");
  // Tensor ranks that divide 10 ranks leave 10 or 5 data-parallel ranks, in shard groups of no 4.
  EXPECT_EQ(refusal(asked(8, DataParallel::hybrid, 4, 30), 10),
            "config_c13: parallel.tensor = 8 does not divide the 10 ranks; this run has 10 ranks: set "
            "parallel.shard_ranks to 5 and parallel.tensor to 2, or start 16 ranks with "
            "parallel.shard_ranks=2");
}

TEST(DivisionSpec, HugeNumbersAreRefusedToo) {
  constexpr std::int64_t huge = 999'999'999'999;
  RunConfig config = asked(huge, DataParallel::hybrid, huge);
  config.micro = huge, config.expert_ranks = huge;
  EXPECT_EQ(refusal(config, 7).rfind("config_c13: ", 0), 0u) << refusal(config, 7);
  config = asked(1), config.sequences = huge;
  EXPECT_EQ(refusal(config, 7).rfind("batch_c1: ", 0), 0u) << refusal(config, 7);
}

TEST(DivisionSpec, TheBatchNamesWhatTheRanksAllow) {
  EXPECT_EQ(
      refusal(asked(1, DataParallel::replicate, 0, 12), 8),
      "batch.sequences = 12 is not a multiple of 8 data-parallel ranks: set batch.sequences to 8 or 16, "
      "or start 6 or 12 ranks");
  // What divides on one rank alone is no way for more.
  RunConfig config = asked(1, DataParallel::replicate, 0, 48);
  config.micro = 9;
  EXPECT_EQ(refusal(config, 1),
            "batch.sequences = 48 is not a multiple of batch.micro = 9 times 1 data-parallel rank = 9: set "
            "batch.sequences to 45 or 54, or batch.micro to 8 or 12");
  EXPECT_EQ(refusal(config, 4),
            "batch.sequences = 48 is not a multiple of batch.micro = 9 times 4 data-parallel ranks = 36: set "
            "batch.sequences to 36 or 72, or batch.micro to 6 or 12");
  config = asked(2);
  config.micro = 3;
  EXPECT_EQ(refusal(config, 8),
            "batch.sequences = 32 is not a multiple of batch.micro = 3 times 4 data-parallel ranks = 12: set "
            "batch.sequences to 24 or 36, or batch.micro to 2 or 4");
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

/// A run divides its ranks where its other settings hold, too.
TEST(DivisionSpec, DividesWhereAllSettingsHold) {
  RunConfig config = asked(1, DataParallel::shard);
  EXPECT_TRUE(divides(config, example(), {8, 8}));
  config.ramp = {{.sequences = 12, .steps = 1}};
  EXPECT_FALSE(divides(config, example(), {8, 8}));
  config.ramp.clear();
  config.linear = quantise::Recipe::fp8_tensor, config.linear_weights = TwinsMade::step;
  EXPECT_FALSE(divides(config, example(), {8, 8})) << "config_c11";
}

/// What a person types who follows the message. `stage`: the one that it is about.
void follow(const tests::Way& change, RunConfig& config, RunRanks& ranks, std::int64_t stage = 0) {
  const bool one_host = ranks.per_host == ranks.all;
  for (const auto& [name, value] : change)
    if (name == "ranks")
      ranks = {value, one_host ? value : ranks.per_host};
    else if (name == "batch.ramp")
      config.ramp.clear();
    else if (name == "that stage")
      std::ranges::find(config.ramp, stage, &RampStage::sequences)->sequences = value;
    else
      find_key(name)->set(config, Value(value));
}

/// What starts a run, on paper.
void start(const RunConfig& config, const ModelSpec& model, const RunRanks& ranks) {
  const bool whole_hosts = ranks.per_host == 0 || ranks.all % ranks.per_host == 0;
  RC_ASSERT(whole_hosts);
  check(config);
  check(config, model);
  const Division division = divide(config, model, ranks);
  check_stages(config, model, ranks);
  memory::Setting setting = memory::setting_of(config, model, division.batch, memory::Machine::cpu);
  setting.layout = division.layout;
  RC_ASSERT(memory::plan(setting).peak > Count(0));
}

ModelSpec drawn_model() {
  ModelSpec model = example();
  model.kv_heads = *rc::gen::element<std::int64_t>(1, 2, 4, 8);
  model.heads = model.kv_heads * *rc::gen::inRange<std::int64_t>(1, 4);
  model.ffn = *rc::gen::element<std::int64_t>(96, 60, 35);
  if (*rc::gen::arbitrary<bool>()) {
    model.family = Family::qwen3_moe;
    model.experts = Experts{.count = *rc::gen::inRange<std::int64_t>(2, 13), .active = 2, .width = 8};
  }
  model.qk_norm_across_heads = *rc::gen::weightedElement<bool>({{5, false}, {1, true}});
  return model;
}

/// Whatever is wrong, and however much of it: every refusal names a way out, and each way that it names
/// starts.
RC_GTEST_PROP(DivisionSpec, EveryRefusalNamesAWayAndEveryWayStarts, ()) {
  const ModelSpec model = drawn_model();
  const auto data = *rc::gen::element(DataParallel::replicate, DataParallel::zero1, DataParallel::shard,
                                      DataParallel::hybrid);
  RunConfig config =
      asked(*rc::gen::inRange<std::int64_t>(1, 10), data, 0, *rc::gen::inRange<std::int64_t>(1, 49));
  if (data == DataParallel::hybrid) config.shard_ranks = *rc::gen::inRange<std::int64_t>(0, 9);
  config.expert_ranks = *rc::gen::element<std::int64_t>(1, 1, 2, 3, 5, 8);
  config.sequence_length = *rc::gen::inRange<std::int64_t>(1, 49);
  if (*rc::gen::arbitrary<bool>())
    config.micro = *rc::gen::elementOf(divisors(config.sequences));
  else if (config.sequences > 2 && *rc::gen::arbitrary<bool>())
    config.ramp = {{.sequences = *rc::gen::inRange<std::int64_t>(1, config.sequences), .steps = 1}};
  const auto per_host = *rc::gen::inRange<std::int64_t>(1, 13);
  RunRanks ranks{per_host * *rc::gen::inRange<std::int64_t>(1, 4), per_host};
  if (*rc::gen::weightedElement<bool>({{5, false}, {1, true}})) ranks = {ranks.all + 1, 0};
  check(config);
  std::string text;
  try {
    divide(config, model, ranks);
    check_stages(config, model, ranks);
    return;
  } catch (const UserError& error) {
    text = error.what();
  } catch (const SpecError& error) {
    text = error.what();
  }
  RC_LOG() << text << "\n";
  const std::vector<tests::Way> ways = tests::ways_of(text);
  RC_ASSERT(!ways.empty());
  for (const tests::Way& way : ways) {
    RunConfig other = config;
    RunRanks of = ranks;
    follow(way, other, of, config.ramp.empty() ? 0 : config.ramp.front().sequences);
    start(other, model, of);
  }
}

/// The same of a run whose degrees are wrong alone and together, of one model.
TEST(DivisionSpec, NoRefusalOfADegreeIsWithoutAWay) {
  ModelSpec model = example();
  model.family = Family::qwen3_moe, model.experts = Experts{.count = 12, .active = 2, .width = 8};
  int refused = 0;
  for (const std::int64_t tensor : {1, 2, 3, 8})
    for (const std::int64_t expert : {1, 5, 7, 12})
      for (const std::int64_t shard_ranks : {0, 3, 4})
        for (const std::int64_t all : {1, 6, 10, 16}) {
          RunConfig config =
              asked(tensor, shard_ranks > 0 ? DataParallel::hybrid : DataParallel::shard, shard_ranks, 48);
          config.expert_ranks = expert;
          std::string text;
          try {
            divide(config, model, {all, all});
            continue;
          } catch (const UserError& error) {
            text = error.what();
          } catch (const SpecError& error) {
            text = error.what();
          }
          ++refused;
          const std::vector<tests::Way> ways = tests::ways_of(text);
          EXPECT_FALSE(ways.empty()) << text;
          for (const tests::Way& way : ways) {
            RunConfig other = config;
            RunRanks of{all, all};
            follow(way, other, of);
            EXPECT_NO_THROW(start(other, model, of)) << text;
          }
        }
  EXPECT_GT(refused, 116);
}

}  // namespace
}  // namespace assay::spec::division_test
