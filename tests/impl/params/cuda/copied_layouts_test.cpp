// labels: parity gpu multigpu
// ranks: 2 4
// Layouts whose shards copy engines move: in fp64 the reference's steps, in bf16 NCCL's bits where both add
// the same two numbers.
#include <ATen/ATen.h>
#include <c10/util/ScopeExit.h>

#include <string>
#include <utility>

#include "impl/ops/determinism.hpp"
#include "tests/impl/params/cuda/gpu_layouts.hpp"

namespace assay::impl::copied_layouts_test {
namespace {

using spec::DataParallel;
using spec::Movers;
using tests::LayoutCase;

constexpr spec::MovedBy copy_engines = spec::MovedBy::copy_engines;

Communicator& world() { return *tests::gpu_ranks().world; }

TEST(CopiedLayoutsCudaImpl, WithWeightsGatheredTheyTrainAsTheReferenceInFp64) {
  ASSAY_NEEDS_GPU_RANKS();
  tests::expect_the_references_steps({.weights = copy_engines});
}

TEST(CopiedLayoutsCudaImpl, WithGradientsScatteredTheyTrainAsTheReferenceInFp64) {
  ASSAY_NEEDS_GPU_RANKS();
  tests::expect_the_references_steps({.gradients = copy_engines});
}

TEST(CopiedLayoutsCudaImpl, WithBothTheyTrainAsTheReferenceInFp64) {
  ASSAY_NEEDS_GPU_RANKS();
  tests::expect_the_references_steps({.weights = copy_engines, .gradients = copy_engines});
}

/// This rank's bf16 weights after some steps, with recomputed blocks and several micro-batches.
at::Tensor weights_after_steps(const spec::Layout& layout, Dtype states, Dtype wire, const Movers& by) {
  const LayoutCase c{.seed = 6, .micro = 1, .accumulation = 3};
  tests::StepRunner runner(tests::tiny_model(c.seed), Dtype::bf16, tests::gpu_ranks().device, world(), layout,
                           tests::layout_settings(), c.seed, states, wire, spec::Recompute::block, by);
  // The group may be the world, which other tests have used.
  const Communicator& shard = runner.groups().shard();
  const std::int64_t gathers = shard.gathers_by_copies(), scatters = shard.scatters_by_copies();
  for (int step = 0; step < 4; ++step) {
    const auto whole = tests::whole_batch(c, world().size(), step);
    runner.step(tests::dealt(whole, c, world().size(), world().rank()),
                static_cast<double>(whole.valid_tokens()), 1e-2);
  }
  runner.parameters().settle_weights();
  EXPECT_EQ(shard.gathers_by_copies() > gathers, by.weights == copy_engines);
  EXPECT_EQ(shard.scatters_by_copies() > scatters, by.gradients == copy_engines);
  return runner.buffers().weights.clone();
}

/// Whatever gathers, the same bits are read; and whatever sums the gradients of a group of two, in fp32 or in
/// bf16, adds two numbers and rounds once. Three ranks and more are summed in another order by NCCL: there
/// sums by copies have the bits of sums by copies. Only the order of atomic sums may move them: steps are
/// deterministic here.
void expect_the_same_bits(const spec::Layout& layout) {
  set_deterministic(true);
  const auto off = c10::make_scope_exit([] { set_deterministic(false); });
  for (const auto& [states, wire] : {std::pair{Dtype::f32, Dtype::f32}, std::pair{Dtype::bf16, Dtype::f32},
                                     std::pair{Dtype::f32, Dtype::bf16}}) {
    const std::string what = std::string(spec::to_string(layout.data)) + ", states in " +
                             at::toString(scalar_type(states)) + ", sums in " +
                             at::toString(scalar_type(wire));
    const auto after = [&, states = states, wire = wire](const Movers& by) {
      return weights_after_steps(layout, states, wire, by);
    };
    const at::Tensor by_nccl = after({}), gathered = after({.weights = copy_engines}),
                     scattered = after({.gradients = copy_engines}),
                     both = after({.weights = copy_engines, .gradients = copy_engines});
    EXPECT_TRUE(at::equal(by_nccl, after({}))) << what << ": NCCL's own, twice";
    EXPECT_TRUE(at::equal(by_nccl, gathered)) << what << ": weights by copies";
    EXPECT_TRUE(at::equal(scattered, both)) << what << ": gradients by copies, twice";
    if (layout.shard_ranks == 2) {
      EXPECT_TRUE(at::equal(by_nccl, scattered)) << what << ": gradients by copies";
    }
  }
}

TEST(CopiedLayoutsCudaImpl, WhatMovesShardsOfZero1DoesNotMoveABit) {
  ASSAY_NEEDS_GPU_RANKS();
  expect_the_same_bits(tests::gpu_layout(DataParallel::zero1));
}

TEST(CopiedLayoutsCudaImpl, WhatMovesShardsOfShardDoesNotMoveABit) {
  ASSAY_NEEDS_GPU_RANKS();
  expect_the_same_bits(tests::gpu_layout(DataParallel::shard));
}

TEST(CopiedLayoutsCudaImpl, WhatMovesShardsOfHybridDoesNotMoveABit) {
  ASSAY_NEEDS_GPU_RANKS();
  expect_the_same_bits(tests::gpu_layout(DataParallel::hybrid));
}

TEST(CopiedLayoutsCudaImpl, TheFirstStepInBf16IsReplicatesButForTheOrderOfSums) {
  ASSAY_NEEDS_GPU_RANKS();
  tests::expect_replicates_first_step({.weights = copy_engines, .gradients = copy_engines});
}

TEST(CopiedLayoutsCudaImpl, CopiesInBf16AreTheSameBits) {
  ASSAY_NEEDS_GPU_RANKS();
  tests::expect_copies_of_the_same_bits({.weights = copy_engines, .gradients = copy_engines});
}

}  // namespace
}  // namespace assay::impl::copied_layouts_test
