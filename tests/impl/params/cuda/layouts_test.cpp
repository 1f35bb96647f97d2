// labels: parity gpu multigpu
// ranks: 2 4
// Every layout over NCCL: in fp64 the reference's steps, in bf16 copies of the same bits.
#include <ATen/ATen.h>

#include "tests/impl/params/cuda/gpu_layouts.hpp"

namespace assay::impl::cuda_layouts_test {
namespace {

Communicator& world() { return *tests::gpu_ranks().world; }
at::Device device() { return tests::gpu_ranks().device; }

TEST(LayoutsCudaImpl, EveryLayoutTrainsAsTheReferenceInFp64) {
  ASSAY_NEEDS_GPU_RANKS();
  tests::expect_the_references_steps({});
}

TEST(LayoutsCudaImpl, TheFirstStepInBf16IsReplicatesButForTheOrderOfSums) {
  ASSAY_NEEDS_GPU_RANKS();
  tests::expect_replicates_first_step({});
}

TEST(LayoutsCudaImpl, CopiesInBf16AreTheSameBits) {
  ASSAY_NEEDS_GPU_RANKS();
  tests::expect_copies_of_the_same_bits({});
}

TEST(LayoutsCudaImpl, InitialWeightsAreThoseOfTheCpu) {
  ASSAY_NEEDS_GPU_RANKS();
  const spec::ModelSpec model = tests::tiny_model(4);
  for (spec::DataParallel data : tests::gpu_layouts) {
    const spec::Layout layout = tests::gpu_layout(data);
    LayoutGroups groups(world(), layout);
    ParameterBuffers here = allocate(model, Dtype::bf16, device(), Dtype::f32, layout, groups.shard().rank()),
                     cpu = allocate(model, Dtype::bf16, at::kCPU, Dtype::f32, layout, groups.shard().rank());
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
