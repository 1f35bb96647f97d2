// labels: unit property
#include "spec/parallel/expert_ranks.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>
#include <string>

#include "spec/parallel/volume.hpp"
#include "tests/support/label_of.hpp"

namespace assay::spec::expert_ranks_test {
namespace {

ModelSpec example() {
  ModelSpec model{.name = "example",
                  .family = Family::qwen3_moe,
                  .vocab = 101,
                  .width = 16,
                  .layers = 3,
                  .heads = 2,
                  .kv_heads = 2,
                  .head_dim = 8,
                  .ffn = 24,
                  .context = 32,
                  .qk_norm = true};
  model.experts = Experts{.count = 8, .active = 2, .width = 5, .shared_width = 3, .first_dense = 1};
  return model;
}

/// Of a group that is all ranks.
Place of_experts(std::int64_t e, std::int64_t rank = 0) {
  return {.layout = layout_of(DataParallel::replicate, e), .expert_ranks = e, .rank = rank};
}

std::string refused(std::int64_t e, const Layout& layout, std::int64_t tensor = 1,
                    const ModelSpec& model = example(), std::int64_t micro = 1) {
  return tests::label_of([&] { check_expert_ranks(model, e, layout, tensor, micro); });
}

TEST(ExpertRanksSpec, C10ToC15RefuseByName) {
  const Layout eight = layout_of(DataParallel::replicate, 8);
  EXPECT_EQ(refused(0, eight), "placement_c10");
  ModelSpec dense = example();
  dense.experts.reset();
  EXPECT_EQ(refused(2, eight, 1, dense), "placement_c11");
  EXPECT_EQ(refused(3, layout_of(DataParallel::replicate, 6)), "placement_c12");
  EXPECT_EQ(refused(4, layout_of(DataParallel::replicate, 6)), "placement_c13");
  EXPECT_EQ(refused(4, layout_of(DataParallel::hybrid, 8, 2)), "placement_c13")
      << "a group of experts lies in a shard group";
  EXPECT_EQ(refused(4, layout_of(DataParallel::replicate, 6), 2, example(), 2), "accepted")
      << "tensor ranks are among those of a group";
  EXPECT_EQ(refused(4, layout_of(DataParallel::hybrid, 8, 2), 2, example(), 2), "accepted");
  for (const std::int64_t e : {1, 2}) {
    EXPECT_EQ(refused(e, eight, 2), "placement_c14");
    EXPECT_EQ(refused(e, eight, 2, example(), 3), "placement_c14");
    EXPECT_EQ(refused(e, eight, 2, example(), 4), "accepted");
  }
  EXPECT_EQ(tests::label_of([] { share(example(), {.expert_ranks = 2}); }), "placement_c13");
  for (const std::int64_t e : {1, 2, 4, 8}) EXPECT_NO_THROW(check_expert_ranks(example(), e, eight));
  EXPECT_NO_THROW(check_expert_ranks(dense, 1, eight, 2));
}

TEST(ExpertRanksSpec, FollowsTheSpecExample) {
  EXPECT_EQ(expert_layout(layout_of(DataParallel::hybrid, 8, 4), 2), (Layout{DataParallel::hybrid, 4, 2}));
  EXPECT_EQ(expert_layout(layout_of(DataParallel::zero1, 4), 4), (Layout{DataParallel::zero1, 1, 1}));
  EXPECT_EQ(expert_layout(layout_of(DataParallel::hybrid, 4, 2), 2, 2), (Layout{DataParallel::hybrid, 4, 2}));
  EXPECT_EQ(expert_layout(layout_of(DataParallel::replicate, 1), 2, 4),
            (Layout{DataParallel::replicate, 2, 1}));
  for (const std::int64_t rank : {0, 1}) {
    std::set<std::int64_t> held;
    const Share own = share(example(), of_experts(2, rank));
    for (const Parameter& parameter : own.sets.at(1).partition.inventory.parameters)
      held.insert(routed_expert(parameter));
    EXPECT_EQ(held, rank == 0 ? (std::set<std::int64_t>{0, 1, 2, 3}) : (std::set<std::int64_t>{4, 5, 6, 7}));
  }
}

/// Every parameter is held once by a group, at a place from which its number and its place in the model
/// follow.
RC_GTEST_PROP(ExpertRanksSpec, AGroupHoldsTheModelOnce, ()) {
  ModelSpec model = example();
  const auto e = *rc::gen::inRange<std::int64_t>(1, 6);
  model.experts->count = e * *rc::gen::inRange<std::int64_t>(1, 4);
  model.experts->active = 1;
  model.experts->shared_width = *rc::gen::element<std::int64_t>(0, 7);
  model.experts->width = *rc::gen::inRange<std::int64_t>(1, 20);
  if (*rc::gen::arbitrary<bool>()) model.family = Family::mixtral, model.qk_norm = false;
  const Inventory whole = inventory(model);
  std::vector<int> held(whole.parameters.size());
  const auto note = [&](const ParameterSet& set) {
    const Inventory& own = set.partition.inventory;
    RC_ASSERT(set.placements.size() == own.parameters.size());
    for (std::size_t i = 0; i < set.placements.size(); ++i) {
      const Parameter& there = whole.parameters.at(set.placements[i].number);
      RC_ASSERT(there.name == own.parameters[i].name && there.shape == own.parameters[i].shape);
      RC_ASSERT(there.block == own.parameters[i].block);
      RC_ASSERT(own.parameters[i].offset + set.placements[i].moved == there.offset);
      ++held[set.placements[i].number];
    }
  };
  // Of every rank the same places: one rank's tell where another's are.
  const Share first = share(model, of_experts(e));
  RC_ASSERT(first.sets.size() == (e > 1 ? 2 : 1));
  note(first.sets.front());
  for (std::int64_t rank = 0; rank < e && e > 1; ++rank) {
    const ParameterSet own = share(model, of_experts(e, rank)).sets.at(1);
    RC_ASSERT(own.partition.inventory.flat_size == first.sets[1].partition.inventory.flat_size);
    for (std::size_t i = 0; i < own.placements.size(); ++i)
      RC_ASSERT(own.partition.inventory.parameters[i].offset ==
                first.sets[1].partition.inventory.parameters[i].offset);
    note(own);
  }
  for (const int times : held) RC_ASSERT(times == 1);
}

/// Groups of a rank, and of both of its sets, by hand.
TEST(ExpertRanksSpec, GroupsFollowTheSpecExample) {
  const Layout hybrid = layout_of(DataParallel::hybrid, 8, 4);
  const Share two = share(example(), {.layout = hybrid, .expert_ranks = 2, .rank = 6});
  using Ranks = std::vector<std::int64_t>;
  EXPECT_EQ(two.groups.experts.ranks(), (Ranks{6, 7}));
  EXPECT_EQ(two.sets.at(0).state.ranks(), (Ranks{4, 5, 6, 7}));
  EXPECT_EQ(two.sets[0].replicas.ranks(), (Ranks{2, 6}));
  EXPECT_EQ(two.sets.at(1).state.ranks(), (Ranks{4, 6}));
  EXPECT_EQ(two.sets[1].replicas.ranks(), (Ranks{2, 6}));
  EXPECT_EQ(two.sets[1].state.number, 1);
  // 4 data ranks of 2 tensor ranks each: neighbours are tensor ranks first.
  const Share beside = share(
      example(),
      {.layout = layout_of(DataParallel::hybrid, 4, 2), .tensor_ranks = 2, .expert_ranks = 2, .rank = 5});
  EXPECT_EQ(beside.groups.tensor.ranks(), (Ranks{4, 5}));
  EXPECT_EQ(beside.groups.batch.ranks(), (Ranks{1, 3, 5, 7}));
  EXPECT_EQ(beside.groups.experts.ranks(), (Ranks{4, 5}));
  EXPECT_EQ(beside.sets.at(0).state.ranks(), (Ranks{5, 7}));
  EXPECT_EQ(beside.sets[0].replicas.ranks(), (Ranks{1, 5}));
  EXPECT_EQ(beside.sets.at(1).state.ranks(), (Ranks{5, 7}));
  EXPECT_EQ(beside.sets[1].replicas.ranks(), (Ranks{1, 5}));
}

/// By hand: 2 sparse layers and 3 micro-batches of 10 tokens that choose 2 experts, 47 times on two ranks and
/// else on one: 107 visits of rows of 16 entries and of 2 choices, with numbers and weights of 4 bytes each.
TEST(ExpertRanksSpec, VolumeByHand) {
  const auto volume = [](Recompute recompute) {
    return expert_volume(example(), 4,
                         {.visits = 107, .accumulation = 3, .recompute = recompute})[Collective::all_to_all];
  };
  const std::int64_t rows = 107 * 16 * 4, choices = 107 * 2 * (4 + 4), weights = 107 * 2 * 4,
                     counts = 2 * 3 * 4 * 2 * 4;
  EXPECT_EQ(volume(Recompute::none), Count(4 * rows + choices + weights + counts));
  EXPECT_EQ(volume(Recompute::norms_swiglu), Count(5 * rows + choices + weights + counts));
  EXPECT_EQ(volume(Recompute::block), Count(6 * rows + 2 * choices + weights + 2 * counts));
  EXPECT_EQ(most_visits(example(), 4, 10, 3), Count(2 * 3 * 10 * 2))
      << "each of 2 choices on a rank of its own";
  // Of 2 sparse layers in FP8, each with 2 GEMMs forward and 2 backward, whose rows and weights have an amax.
  const auto agreed = [](QuantiseWeights when, Recompute recompute, std::vector<std::int64_t> without) {
    return expert_volume(example(), 4,
                         {.visits = 107,
                          .accumulation = 3,
                          .recompute = recompute,
                          .linear = {.recipe = quantise::Recipe::fp8_tensor,
                                     .unquantised = std::move(without),
                                     .weights = when,
                                     .experts = true}})[Collective::all_reduce];
  };
  EXPECT_EQ(agreed(QuantiseWeights::use, Recompute::none, {}), Count(2 * 3 * (4 + 4) * 4));
  EXPECT_EQ(agreed(QuantiseWeights::use, Recompute::block, {}), Count(2 * 3 * (5 + 5) * 4));
  EXPECT_EQ(agreed(QuantiseWeights::step, Recompute::norms_swiglu, {}), Count(2 * (3 * 4 + 2) * 4));
  EXPECT_EQ(agreed(QuantiseWeights::use, Recompute::none, {example().layers}), Count(3 * (4 + 4) * 4));
  EXPECT_EQ(expert_volume(example(), 1, {.visits = 107}), Volume{});
  EXPECT_EQ(expert_volume(example(), 4, {.visits = 107})[Collective::all_gather], Count(4 * 8))
      << "sums of squares";
}

/// Beside tensor ranks everything but the routed experts is a tensor rank's: of each matrix a part, of
/// routers and shared experts all, whose gradients are summed over them. A sparse layer's MLP gathers
/// nothing.
TEST(ExpertRanksSpec, BesideTensorRanks) {
  EXPECT_EQ(share(example(), {}).sets.size(), 1u);
  EXPECT_EQ(share(example(), of_experts(2)).sets.size(), 2u);
  const Share own = share(example(), {.tensor_ranks = 2, .rank = 1});
  ASSERT_EQ(own.sets.size(), 2u);
  const std::vector<Parameter> whole = inventory(example()).parameters;
  for (std::size_t i = 0; i < own.sets[0].placements.size(); ++i) {
    const Placement& placed = own.sets[0].placements[i];
    const Parameter& one = whole.at(placed.number);
    EXPECT_LT(routed_expert(one), 0);
    const bool split = one.matrix() && one.role != Role::router && one.role != Role::shared_gate &&
                       one.role != Role::shared_up && one.role != Role::shared_down;
    EXPECT_EQ(placed.holders, split ? 1 : 2) << one.name;
    EXPECT_EQ(own.sets[0].partition.inventory.parameters.at(i).name, one.name);
  }
  const TensorTraffic traffic{.tokens = 10, .accumulation = 3};
  ModelSpec dense = example();
  dense.experts.reset();
  const Volume all = tensor_volume(share(dense, {.tensor_ranks = 2}), traffic),
               sparse = tensor_volume(own, traffic);
  // Two layers without the 2 + 2 collectives of an MLP, rows of 16 entries.
  EXPECT_EQ(all[Collective::reduce_scatter],
            sparse[Collective::reduce_scatter] + Count(2 * 2 * 3 * 10 * 16 * 4));
  // Of each router two losses, its entropy, what was dropped, and 8 loads.
  EXPECT_EQ(sparse[Collective::all_reduce], all[Collective::all_reduce] + Count(2 * (4 + 8) * 8));
  TensorTraffic of_batch = traffic;
  of_batch.balance_of_batch = true;
  EXPECT_EQ(tensor_volume(own, of_batch)[Collective::all_reduce],
            sparse[Collective::all_reduce] + Count(3 * 2 * 8 * 8));
}

/// Experts' gradients are summed over the ranks that hold the same ones, and over no others.
TEST(ExpertRanksSpec, ExpertsAreSummedOverTheirOwnDataRanks) {
  const auto share_of = [](const Layout& layout) {
    return share(example(), {.layout = layout, .expert_ranks = 4, .rank = 1});
  };
  const auto of = [&](const Layout& layout) {
    return step_volume(share_of(layout), {.accumulation = 2, .gradient_bytes = 4, .weight_bytes = 4}).experts;
  };
  const auto size = [&](const Layout& layout) {
    return Count(share_of(layout).sets.at(1).partition.inventory.flat_size);
  };
  const Layout four = layout_of(DataParallel::replicate, 4), eight = layout_of(DataParallel::replicate, 8),
               zero1 = layout_of(DataParallel::zero1, 8), shard = layout_of(DataParallel::shard, 8);
  EXPECT_EQ(of(four), Volume{}) << "no other rank holds them";
  EXPECT_EQ(of(eight)[Collective::all_reduce], size(eight) * 4);
  EXPECT_EQ(of(layout_of(DataParallel::shard, 4)), Volume{});
  EXPECT_EQ(of(zero1)[Collective::all_gather], size(zero1) * 4);
  EXPECT_EQ(of(shard)[Collective::reduce_scatter], 2 * size(shard) * 4);
}

}  // namespace
}  // namespace assay::spec::expert_ranks_test
