// labels: parity gpu multigpu
// ranks: 2 4
// Expert parallelism between ranks of one GPU through the staged communicator (`ci/gpu staged`) and over NCCL
// (`ci/gpu multigpu`): in fp64 the reference's steps, in bf16 and with experts in FP8 as close to the fp64
// gradient as without it.
#include <ATen/ATen.h>

#include <cmath>

#include "impl/ops/grouped_linear/grouped_linear.hpp"
#include "tests/impl/comm/cuda/staged_ranks.hpp"
#include "tests/impl/params/layout_parity.hpp"

namespace assay::impl::cuda_expert_ranks_test {
namespace {

using spec::DataParallel;
using tests::LayoutCase;

Communicator& world() { return *tests::shared_or_own_gpus().world; }
at::Device device() { return tests::shared_or_own_gpus().device; }

TEST(ExpertRanksCudaImpl, TrainAsTheReferenceInFp64) {
  if (!tests::shared_or_own_gpus().missing.empty()) GTEST_SKIP() << tests::shared_or_own_gpus().missing;
  for (std::int64_t expert = 2; expert <= world().size(); expert *= 2)
    for (const DataParallel data : {DataParallel::replicate, DataParallel::zero1, DataParallel::shard})
      for (std::uint64_t seed = 0; seed < 4; ++seed) {
        const spec::Layout layout = spec::layout_of(data, world().size());
        LayoutCase c{.seed = 60 + seed,
                     .accumulation = static_cast<std::int64_t>(1 + seed % 2),
                     .documents = static_cast<tests::Documents>(seed % 2),
                     .ignored = static_cast<tests::Ignored>(seed % 4),
                     .steps = 3,
                     .recompute = seed == 2   ? spec::Recompute::block
                                  : seed == 3 ? spec::Recompute::norms_swiglu
                                              : spec::Recompute::none};
        c.experts = true, c.expert = expert, c.one_expert = seed == 3;
        EXPECT_EQ(tests::difference_from_reference(c, layout, world(), device()), "")
            << "rank " << world().rank() << ", " << tests::describe(c, layout);
      }
}

/// Two tensor ranks, which are among those that hold experts between them.
TEST(ExpertRanksCudaImpl, OfTensorRanksTrainAsTheReferenceInFp64) {
  if (!tests::shared_or_own_gpus().missing.empty()) GTEST_SKIP() << tests::shared_or_own_gpus().missing;
  for (std::int64_t expert = 1; expert <= world().size(); expert *= 2)
    for (const DataParallel data : {DataParallel::replicate, DataParallel::zero1, DataParallel::shard})
      for (std::uint64_t seed = 0; seed < 2; ++seed) {
        const spec::Layout layout = spec::layout_of(data, world().size() / 2);
        LayoutCase c{.seed = 80 + seed,
                     .micro = 2,
                     .accumulation = static_cast<std::int64_t>(1 + seed),
                     .ignored = tests::Ignored::some,
                     .steps = 3,
                     .tensor = 2,
                     .recompute = seed == 0 ? spec::Recompute::block : spec::Recompute::none};
        c.experts = true, c.expert = expert;
        EXPECT_EQ(tests::difference_from_reference(c, layout, world(), device()), "")
            << "rank " << world().rank() << ", " << tests::describe(c, layout);
      }
}

/// Wide enough for grouped kernels and fused attention.
spec::ModelSpec wide() {
  spec::ModelSpec model = tests::tiny_model(4);
  model.family = spec::Family::qwen3_moe, model.qk_norm = true, model.qk_norm_across_heads = false,
  model.qkv_bias = false, model.window = 0;
  model.vocab = 1001, model.width = 256, model.layers = 2, model.heads = 8, model.kv_heads = 2;
  model.head_dim = 64, model.ffn = 512, model.context = 64, model.tied_embeddings = false;
  model.mlp = spec::Mlp::swiglu, model.init_std = 0.02;
  model.experts = spec::Experts{.count = 8, .active = 2, .width = 128, .shared_width = 64};
  return model;
}

/// |gradient - reference| / |reference| of the first step in bf16, all parameters as one vector.
double error_of(Communicator& ranks, std::int64_t expert, const reference::Batch& batch,
                const reference::Parameters<double>& expected, const spec::LinearPrecision& linear) {
  const std::int64_t each = batch.B / ranks.size();
  tests::StepRunner runner(wide(), Dtype::bf16, device(), ranks,
                           spec::layout_of(DataParallel::replicate, ranks.size()), tests::layout_settings(),
                           3, Dtype::f32, Dtype::f32, spec::Recompute::norms_swiglu, linear, 1, expert);
  runner.step({tests::sequences(batch, ranks.rank() * each, (ranks.rank() + 1) * each)},
              static_cast<double>(batch.valid_tokens()), 1e-3);
  const at::Tensor whole = tests::whole_model(runner, &ParameterBuffers::gradients);
  double difference = 0, size = 0;
  for (const spec::Parameter& parameter : runner.buffers().model.parameters) {
    const tests::Values got = tests::values(whole, parameter);
    const auto& wanted = expected.at(parameter.name).flat();
    for (std::size_t i = 0; i < got.data.size(); ++i) {
      difference += std::pow(got.data[i] - wanted[static_cast<Eigen::Index>(i)], 2);
      size += std::pow(wanted[static_cast<Eigen::Index>(i)], 2);
    }
  }
  return std::sqrt(difference / size);
}

/// That ranks agree on scales is shown on CPUs (tests/impl/params/expert_ranks_test.cpp): a scale of one's
/// own moves subnormal codes alone, far less than is allowed here.
TEST(ExpertRanksCudaImpl, AreAsCloseAsOneRank) {
  if (!tests::shared_or_own_gpus().missing.empty()) GTEST_SKIP() << tests::shared_or_own_gpus().missing;
  const auto batch = tests::tiny_batch(wide(), 4, 64, tests::Documents::whole, tests::Ignored::some, 12);
  const auto expected = reference::step_gradients(reference::initial_state(wide(), 3).parameters, wide(),
                                                  {batch}, tests::layout_settings().z_loss)
                            .gradients;
  const auto alone = make_self_communicator();
  std::vector<spec::LinearPrecision> all = {{}};
  if (grouped_linear::cuda::has_kernels())
    for (const auto weights : {spec::QuantiseWeights::use, spec::QuantiseWeights::step})
      all.push_back({.recipe = spec::quantise::Recipe::fp8_tensor, .weights = weights, .experts = true});
  else if (world().rank() == 0)
    std::cout << "experts in FP8 are left out: no kernels for this GPU in this build\n";
  for (const spec::LinearPrecision& linear : all) {
    const double one = error_of(*alone, 1, batch, expected, linear),
                 several = error_of(world(), world().size(), batch, expected, linear);
    if (world().rank() == 0)
      std::cout << "gradient off the fp64 reference, " << (linear.experts ? spec::describe(linear) : "bf16")
                << ": " << one << " on one rank, " << several << " on " << world().size()
                << " expert ranks\n";
    EXPECT_GT(one, 0);
    EXPECT_LE(several, 1.5 * one);
  }
}

}  // namespace
}  // namespace assay::impl::cuda_expert_ranks_test
