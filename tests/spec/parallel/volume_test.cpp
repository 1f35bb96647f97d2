// labels: unit property
#include "spec/parallel/volume.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <numeric>
#include <string>

#include "spec/error.hpp"
#include "spec/parallel/gathered_codes.hpp"
#include "tests/support/draw_model.hpp"
#include "tests/support/label_of.hpp"

namespace assay::spec::volume_test {
namespace {

using Numbers = std::vector<std::int64_t>;

TEST(VolumeSpec, FollowsTheSpecExample) {
  EXPECT_EQ(block_gathers(6, 2, false), (Numbers{2, 3, 3, 2, 2, 2}));
  EXPECT_EQ(block_gathers(6, 2, true), (Numbers{1, 3, 3, 2, 2, 1}));
}

TEST(VolumeSpec, TwoBlocksThatStayAreGatheredOnce) {
  EXPECT_EQ(block_gathers(3, 4, false), (Numbers{4, 1, 4}));
  EXPECT_EQ(block_gathers(4, 4, false), (Numbers{4, 1, 1, 4}));
  EXPECT_EQ(block_gathers(5, 4, true), (Numbers{1, 5, 1, 4, 1}));
}

TEST(VolumeSpec, C1RejectsAModelWithoutBlocksAndAStepWithoutMicroBatches) {
  EXPECT_EQ(tests::label_of([] { block_gathers(2, 1, false); }), "volume_c1");
  EXPECT_EQ(tests::label_of([] { block_gathers(3, 0, false); }), "volume_c1");
}

/// What a step of the layout sends, of a drawn model.
struct Drawn {
  ModelSpec model = tests::draw_model();
  std::int64_t accumulation = *rc::gen::inRange<std::int64_t>(1, 6);
  std::int64_t ranks = *rc::gen::inRange<std::int64_t>(2, 9);

  StepVolume of(DataParallel data, std::int64_t all, std::int64_t shard_ranks) const {
    const Layout layout = layout_of(data, all, shard_ranks);
    return step_volume(share(model, {.layout = layout}), {.accumulation = accumulation,
                                                          .gradient_bytes = 4,
                                                          .weight_bytes = 2,
                                                          .tied_embeddings = model.tied_embeddings});
  }
};

RC_GTEST_PROP(VolumeSpec, OneRankIsSilent, ()) {
  const Drawn drawn;
  for (DataParallel data :
       {DataParallel::replicate, DataParallel::zero1, DataParallel::shard, DataParallel::hybrid})
    RC_ASSERT(drawn.of(data, 1, data == DataParallel::hybrid ? 1 : 0) == StepVolume{});
}

RC_GTEST_PROP(VolumeSpec, AccumulationCostsTheWholeLayoutsNothing, ()) {
  Drawn drawn;
  const auto replicate = drawn.of(DataParallel::replicate, drawn.ranks, 0),
             zero1 = drawn.of(DataParallel::zero1, drawn.ranks, 0);
  drawn.accumulation += 3;
  RC_ASSERT(drawn.of(DataParallel::replicate, drawn.ranks, 0) == replicate);
  RC_ASSERT(drawn.of(DataParallel::zero1, drawn.ranks, 0) == zero1);
}

RC_GTEST_PROP(VolumeSpec, HybridIsShardWithinAndAnAllReduceOfSharesAcross, ()) {
  const Drawn drawn;
  const auto shard = drawn.of(DataParallel::shard, drawn.ranks, 0),
             hybrid = drawn.of(DataParallel::hybrid, 3 * drawn.ranks, drawn.ranks);
  RC_ASSERT(hybrid.shard == shard.shard);
  RC_ASSERT(shard.replica == Volume{});
  RC_ASSERT(Count(drawn.accumulation * drawn.ranks) * hybrid.replica[Collective::all_reduce] ==
            shard.shard[Collective::reduce_scatter]);
  // All ranks in one shard group: the same but for the name.
  RC_ASSERT(drawn.of(DataParallel::hybrid, drawn.ranks, drawn.ranks) == shard);
}

RC_GTEST_PROP(VolumeSpec, AShardedStepGathersTwiceWhatZero1DoesAtMost, ()) {
  Drawn drawn;
  drawn.accumulation = 1;
  const auto shard = drawn.of(DataParallel::shard, drawn.ranks, 0).shard[Collective::all_gather],
             zero1 = drawn.of(DataParallel::zero1, drawn.ranks, 0).shard[Collective::all_gather];
  RC_ASSERT(shard >= zero1 && shard <= 2 * zero1);
}

TEST(VolumeSpec, WhereStateIsShardedTheGainsOfNormsFollowTheUpdateInFp32) {
  const ModelSpec model = find_model("tiny-llama");
  const Layout layout = layout_of(DataParallel::zero1, 2);
  const auto all_reduced = [&](std::int64_t weight_bytes) {
    return step_volume(share(model, {.layout = layout}), {.weight_bytes = weight_bytes})
        .shard[Collective::all_reduce];
  };
  const Count gains = Count(2 * model.layers + 1) * ((model.width + 63) / 64 * 64);
  EXPECT_EQ(all_reduced(2), Count(8) + gains * 4);
  EXPECT_EQ(all_reduced(4), Count(8));
}

/// tiny-llama on two ranks, by hand: 4 blocks of 196,864 parameters, of which 256 are gains, in 4 linears
/// each.
TEST(VolumeSpec, CodesAreGatheredAtAByteAndTheirAmaxIsAgreedOn) {
  ModelSpec model = find_model("tiny-llama");
  const auto of = [&](const LinearPrecision& linear, DataParallel data, std::int64_t weight_bytes) {
    return step_volume(share(model, {.layout = layout_of(data, 2)}),
                       {.accumulation = 2, .weight_bytes = weight_bytes, .linear = linear})
        .shard;
  };
  const LinearPrecision fp8{.recipe = quantise::Recipe::fp8_tensor}, none;
  const std::int64_t block = 196'864, gathers = 3 + 3 + 2 + 2;
  for (const std::int64_t weight_bytes : {2, 4, 8}) {
    const Volume codes = of(fp8, DataParallel::shard, weight_bytes),
                 values = of(none, DataParallel::shard, weight_bytes);
    EXPECT_EQ(values[Collective::all_gather] - codes[Collective::all_gather],
              Count(gathers * block) * (weight_bytes - 1));
    // Beside weights of 2 bytes gains are in fp32 on every rank with and without FP8.
    EXPECT_EQ(codes[Collective::all_reduce] - values[Collective::all_reduce],
              Count(4 * 4 * 4) + (weight_bytes == 2 ? Count(0) : Count(4 * 256) * weight_bytes));
    EXPECT_EQ(codes[Collective::reduce_scatter], values[Collective::reduce_scatter]);
    EXPECT_EQ(of(fp8, DataParallel::zero1, weight_bytes), of(none, DataParallel::zero1, weight_bytes));
  }
  LinearPrecision first_left = fp8;
  first_left.unquantised = {1};
  const Volume left = of(first_left, DataParallel::shard, 2), codes = of(fp8, DataParallel::shard, 2);
  EXPECT_EQ(left[Collective::all_gather] - codes[Collective::all_gather], Count(3 * block));
  EXPECT_EQ(codes[Collective::all_reduce] - left[Collective::all_reduce], Count(4 * 4));
  for (const quantise::Recipe recipe : {quantise::Recipe::fp8_block, quantise::Recipe::mxfp8})
    EXPECT_EQ(of({.recipe = recipe}, DataParallel::shard, 2), of(none, DataParallel::shard, 2));
  // Experts are read in the compute type, and a block is gathered as one.
  ModelSpec mixed = model;
  mixed.family = Family::qwen3,
  mixed.experts = Experts{.count = 4, .active = 2, .width = 64, .first_dense = 1};
  EXPECT_EQ(gathered_codes(inventory(mixed), fp8, true).blocks, (std::vector<std::int64_t>{1}));
  // The projections of latent attention are linears of their own: seven of a block, or six where queries are
  // not compressed. Only the blocks' gains come beside them.
  ModelSpec latent = model;
  latent.family = Family::deepseek_v3, latent.kv_heads = latent.heads;
  for (const std::int64_t query_rank : {32, 0}) {
    latent.latent = LatentAttention{
        .query_rank = query_rank, .key_value_rank = 32, .rope_dim = model.head_dim / 2, .value_dim = 16};
    const GatheredCodes of_latent = gathered_codes(inventory(latent), fp8, true);
    EXPECT_EQ(of_latent.blocks, (std::vector<std::int64_t>{1, 2, 3, 4}));
    EXPECT_EQ(of_latent.linears, 4 * (query_rank > 0 ? 7 : 6));
    EXPECT_EQ(of_latent.vectors.flat_size, 0);
  }
  // Biases stand beside each other as in the weights, and come in the weights' type.
  model.qkv_bias = true;
  EXPECT_EQ(of(fp8, DataParallel::shard, 2)[Collective::all_reduce] -
                of(none, DataParallel::shard, 2)[Collective::all_reduce],
            Count(4 * 4 * 4) + Count(4 * 256) * 2);
}

TEST(VolumeSpec, ARingSendsAllButItsOwnShare) {
  Volume reduced, scattered_and_gathered;
  reduced[Collective::all_reduce] = 800;
  scattered_and_gathered[Collective::reduce_scatter] = 800;
  scattered_and_gathered[Collective::all_gather] = 400;
  EXPECT_DOUBLE_EQ(sent_bytes(reduced, 4), 1200);
  EXPECT_DOUBLE_EQ(sent_bytes(scattered_and_gathered, 4), 900);
  EXPECT_DOUBLE_EQ(sent_bytes(reduced, 1), 0);
}

}  // namespace
}  // namespace assay::spec::volume_test
