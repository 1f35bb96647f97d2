// labels: parity property
// Shards that are gathered as FP8 codes: on every rank the codes and the scale are those of the whole matrix,
// wherever shards cut it, and a step has the bits that it has between replicas.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <mutex>

#include "tests/impl/comm/thread_ranks.hpp"
#include "tests/impl/params/block_codes_parity.hpp"

namespace assay::impl::block_codes_test {
namespace {

using namespace parity;
using spec::DataParallel;
using tests::LayoutCase;

RC_GTEST_PROP(BlockCodesImpl, EveryRankHasTheScaleAndTheCodesOfTheWhole, ()) {
  // Extents that are no multiples of anything, too: GEMMs ask for 16, codes do not.
  LayoutCase c{.seed = *rc::gen::inRange<std::uint64_t>(0, 1000), .latent = *rc::gen::arbitrary<bool>()};
  if (c.latent) c.seed *= 2;  // those of an odd seed have experts, whose blocks come in the compute type
  if (*rc::gen::arbitrary<bool>()) c.linear = fp8_linears;
  const spec::ModelSpec model = tests::case_model(c);
  const auto dtype = *rc::gen::element(Dtype::f64, Dtype::f32, Dtype::bf16);
  const auto shard_ranks = *rc::gen::inRange<std::int64_t>(2, 7),
             replicas = *rc::gen::inRange<std::int64_t>(1, 3);
  const spec::Layout layout =
      replicas == 1 ? spec::layout_of(DataParallel::shard, shard_ranks)
                    : spec::layout_of(DataParallel::hybrid, shard_ranks * replicas, shard_ranks);
  spec::LinearPrecision linear = fp8_linears;
  if (*rc::gen::arbitrary<bool>()) linear.unquantised = {model.layers};
  const DrawnWeights first{.seed = c.seed, .odd = *rc::gen::element(1.0, std::nan(""), HUGE_VAL)},
      second{.seed = c.seed + 1};
  const auto alone = make_self_communicator();
  Rank whole(model, dtype, at::kCPU, *alone, spec::Layout{}, {}, first);
  std::mutex mutex;
  std::string found;
  for (const DrawnWeights& values : {first, second}) {
    whole.change(values);
    tests::on_thread_ranks(static_cast<int>(layout.ranks), [&](Communicator& communicator) {
      // The second values come after the first: nothing of those may stay.
      Rank rank(model, dtype, at::kCPU, communicator, layout, linear, first);
      for (std::int64_t block = 0; block <= model.layers; ++block) {
        rank.parameters->acquire(block, Weights::operands);
        rank.parameters->release(block);
      }
      rank.change(values);
      std::string mine;
      for (std::int64_t block = 1; block <= model.layers; ++block) {
        const BlockWeights& got = rank.parameters->acquire(block, Weights::operands);
        const bool codes = linear.of(block, model.layers) == Recipe::fp8_tensor;
        const DecoderWeights& expected = whole.parameters->acquire(block, Weights::operands).decoder;
        const bool same =
            codes || at::equal(bytes_of(got.decoder.down.values()), bytes_of(expected.down.values()));
        const std::string differs = codes ? difference(got.decoder, expected) : same ? "" : "values differ";
        if (!differs.empty()) mine += "block " + std::to_string(block) + ": " + differs;
        rank.parameters->release(block);
      }
      const std::scoped_lock lock(mutex);
      if (!mine.empty()) found += "rank " + std::to_string(communicator.rank()) + ": " + mine;
    });
  }
  if (!found.empty()) RC_FAIL(found + tests::describe(c, layout));
}

/// Logits are of values: a block that is there as codes is gathered anew, and codes are never taken for
/// values.
TEST(BlockCodesImpl, ValuesAreGatheredWhereValuesAreRead) {
  const LayoutCase c{.seed = 5, .linear = fp8_linears};
  const spec::ModelSpec model = tests::case_model(c);
  const auto alone = make_self_communicator();
  Rank whole(model, Dtype::bf16, at::kCPU, *alone, spec::Layout{}, {}, {.seed = 1});
  const at::Tensor expected = whole.parameters->acquire(1, Weights::values).decoder.gate_up.values();
  tests::on_thread_ranks(3, [&](Communicator& communicator) {
    Rank rank(model, Dtype::bf16, at::kCPU, communicator, spec::layout_of(DataParallel::shard, 3),
              fp8_linears, {.seed = 1});
    for (int time = 0; time < 2; ++time) {
      const WeightMatrix& codes = rank.parameters->acquire(1, Weights::operands).decoder.gate_up;
      EXPECT_TRUE(codes.defined() && codes.codes().defined());
      EXPECT_THROW(codes.values(), std::logic_error);
      // In use as codes, its slot is not free.
      EXPECT_THROW(rank.parameters->acquire(1, Weights::values), std::logic_error);
      rank.parameters->release(1);
      const WeightMatrix& values = rank.parameters->acquire(1, Weights::values).decoder.gate_up;
      EXPECT_FALSE(values.codes().defined());
      EXPECT_TRUE(at::equal(values.values(), expected));
      rank.parameters->release(1);
    }
  });
}

/// Bits of losses, gradients and weights of three steps that are not clipped, so that no sum over shards
/// comes in.
std::vector<at::Tensor> trained(const LayoutCase& c, DataParallel data, Dtype dtype) {
  const spec::ModelSpec model = tests::case_model(c);
  const spec::Layout layout = spec::layout_of(data, 2);
  impl::run::StepSettings settings = tests::layout_settings();
  settings.clip = 1e6;
  std::mutex mutex;
  std::vector<at::Tensor> out;
  tests::on_thread_ranks(2, [&](Communicator& communicator) {
    tests::StepRunner runner(model, dtype, at::kCPU, communicator, layout, settings, c.seed, Dtype::f32,
                             Dtype::f32, c.recompute, c.linear);
    std::vector<at::Tensor> mine;
    for (int step = 0; step < 3; ++step) {
      const auto whole = tests::whole_batch(c, layout.ranks, step);
      const auto result = runner.step(tests::dealt(whole, c, layout.ranks, communicator.rank()),
                                      static_cast<double>(whole.valid_tokens()), 3e-3);
      mine.push_back(at::tensor({result.cross_entropy, result.z_loss}, at::kDouble));
      runner.parameters().settle_weights();
      const at::Tensor gradients = tests::whole_of(runner, runner.buffers().gradients),
                       master = tests::whole_of(runner, runner.buffers().master);
      for (const spec::Parameter& p : runner.buffers().inventory.parameters)
        for (const at::Tensor& each : {gradients, master}) mine.push_back(each.narrow(0, p.offset, p.size));
    }
    const std::scoped_lock lock(mutex);
    if (communicator.rank() == 0) out = mine;
  });
  return out;
}

TEST(BlockCodesImpl, StepsHaveTheBitsThatTheyHaveBetweenReplicas) {
  for (const Dtype dtype : {Dtype::f64, Dtype::f32, Dtype::bf16})
    for (const auto& [seed, latent] : {std::pair{3, false}, {6, false}, {4, true}, {6, true}}) {
      LayoutCase c{.seed = static_cast<std::uint64_t>(seed),
                   .ignored = tests::Ignored::some,
                   .recompute = seed == 6 ? spec::Recompute::none : spec::Recompute::block,
                   .latent = latent,
                   .linear = fp8_linears};
      if (seed == 6) c.linear.unquantised = {2};
      const auto replicas = trained(c, DataParallel::replicate, dtype),
                 shards = trained(c, DataParallel::shard, dtype);
      ASSERT_EQ(replicas.size(), shards.size());
      for (std::size_t i = 0; i < replicas.size(); ++i)
        ASSERT_TRUE(at::equal(replicas[i], shards[i]))
            << "tensor " << i << ", dtype " << static_cast<int>(dtype) << ", seed " << seed
            << (latent ? ", latent" : "");
    }
}

}  // namespace
}  // namespace assay::impl::block_codes_test
