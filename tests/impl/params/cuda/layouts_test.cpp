// labels: parity gpu multigpu
// ranks: 2 4
// Every layout over NCCL: in fp64 the reference's steps, in bf16 copies of the same bits.
#include <ATen/ATen.h>

#include "impl/params/replica_hash.hpp"
#include "tests/impl/comm/cuda/gpu_ranks.hpp"
#include "tests/impl/params/layout_parity.hpp"

namespace assay::impl::cuda_layouts_test {
namespace {

using spec::DataParallel;
using tests::LayoutCase;

constexpr DataParallel layouts[] = {DataParallel::replicate, DataParallel::zero1, DataParallel::shard,
                                    DataParallel::hybrid};

Communicator& world() { return *tests::gpu_ranks().world; }
at::Device device() { return tests::gpu_ranks().device; }

/// Over all ranks. Hybrid: in shards of two where the ranks are four or more, else whole copies.
spec::Layout layout_of(DataParallel data) {
  const std::int64_t ranks = world().size();
  return spec::layout_of(data, ranks,
                         data == DataParallel::hybrid ? (ranks % 2 || ranks < 4 ? ranks : 2) : 0);
}

TEST(LayoutsCudaImpl, EveryLayoutTrainsAsTheReferenceInFp64) {
  ASSAY_NEEDS_GPU_RANKS();
  for (DataParallel data : layouts)
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
      LayoutCase c{.seed = 300 + seed,
                   .micro = static_cast<std::int64_t>(1 + seed % 2),
                   .accumulation = static_cast<std::int64_t>(1 + seed % 3),
                   .documents = static_cast<tests::Documents>(seed % 2),
                   .ignored = static_cast<tests::Ignored>(seed % 4)};
      c.experts = seed >= 2;
      EXPECT_EQ(tests::difference_from_reference(c, layout_of(data), world(), device()), "")
          << "rank " << world().rank() << ", " << tests::describe(c, layout_of(data));
    }
}

TEST(LayoutsCudaImpl, TheFirstStepInBf16IsReplicatesButForTheOrderOfSums) {
  ASSAY_NEEDS_GPU_RANKS();
  const LayoutCase c{.seed = 7, .micro = 1, .accumulation = 2, .ignored = tests::Ignored::some};
  for (DataParallel data : {DataParallel::zero1, DataParallel::shard, DataParallel::hybrid})
    EXPECT_EQ(tests::first_step_off_replicates(c, layout_of(data), world(), device()), "")
        << spec::to_string(data);
}

/// The losses of a batch that comes again fall, and what ranks hold copies of has the same bits on each.
TEST(LayoutsCudaImpl, CopiesInBf16AreTheSameBits) {
  ASSAY_NEEDS_GPU_RANKS();
  const LayoutCase c{.seed = 5, .micro = 1, .accumulation = 2};
  for (DataParallel data : layouts)
    for (Dtype states : {Dtype::f32, Dtype::bf16})
      for (Dtype wire : {Dtype::f32, Dtype::bf16}) {
        tests::StepRunner runner(tests::tiny_model(c.seed), Dtype::bf16, device(), world(), layout_of(data),
                                 tests::layout_settings(), c.seed, states, wire);
        double first = 0, last = 0;
        for (int step = 0; step < 6; ++step) {
          const auto whole = tests::whole_batch(c, world().size(), 0);
          const auto result = runner.step(tests::dealt(whole, c, world().size(), world().rank()),
                                          static_cast<double>(whole.valid_tokens()), 1e-2);
          (step == 0 ? first : last) = result.cross_entropy;
        }
        runner.parameters().settle_weights();
        EXPECT_EQ(compare_replicas(runner.buffers(), runner.groups()).odd, "") << spec::to_string(data);
        EXPECT_LT(last, first) << spec::to_string(data);
      }
}

TEST(LayoutsCudaImpl, InitialWeightsAreThoseOfTheCpu) {
  ASSAY_NEEDS_GPU_RANKS();
  const spec::ModelSpec model = tests::tiny_model(4);
  for (spec::DataParallel data : layouts) {
    const spec::Layout layout = layout_of(data);
    const spec::Place place{.layout = layout, .rank = world().rank()};
    ParameterBuffers here = allocate(model, Dtype::bf16, device(), Dtype::f32, place),
                     cpu = allocate(model, Dtype::bf16, at::kCPU, Dtype::f32, place);
    initialise(here, model, 4);
    initialise(cpu, model, 4);
    EXPECT_TRUE(at::equal(here.master.cpu(), cpu.master)) << spec::to_string(data);
    EXPECT_TRUE(at::equal(here.weights.cpu(), cpu.weights)) << spec::to_string(data);
  }
}

TEST(LayoutsCudaImpl, ANonFiniteGradientNamesTheRankAndTheParameter) {
  ASSAY_NEEDS_GPU_RANKS();
  const spec::ModelSpec model = tests::tiny_model(1);
  const int culprit = world().size() - 1;
  tests::StepRunner runner(model, Dtype::f32, device(), world(), tests::layout_settings(), 1);
  if (world().rank() == culprit)
    runner.buffers().weights[runner.buffers().inventory.at("model.layers.0.mlp.down_proj.weight").offset] =
        std::numeric_limits<float>::quiet_NaN();
  const auto batch = tests::tiny_batch(model, 1, 5, tests::Documents::whole, tests::Ignored::none, 1);
  try {
    runner.step({batch}, static_cast<double>(batch.valid_tokens() * world().size()), 1e-3);
    FAIL() << "went on";
  } catch (const run::NonFiniteError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("rank " + std::to_string(culprit) + ":"), std::string::npos) << text;
    EXPECT_EQ(text.find("rank 0:"), std::string::npos) << text;
    bool named = false;
    for (const spec::Parameter& parameter : runner.buffers().inventory.parameters)
      named = named || text.find("gradient of " + parameter.name + " is not finite") != std::string::npos;
    EXPECT_TRUE(named) << text;
  }
}

}  // namespace
}  // namespace assay::impl::cuda_layouts_test
