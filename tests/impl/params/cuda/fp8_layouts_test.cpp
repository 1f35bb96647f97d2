// labels: parity gpu
// ranks: 2 4
// FP8 between ranks of one GPU, through the staged communicator: what shards gather are the codes of the
// whole, and the first step of every layout is that of one rank.
#include <ATen/ATen.h>

#include <iostream>

#include "impl/ops/determinism.hpp"
#include "impl/ops/gemm/fp8_gemm.hpp"
#include "spec/metrics/scaling.hpp"
#include "tests/impl/comm/cuda/staged_ranks.hpp"
#include "tests/impl/params/block_codes_parity.hpp"
#include "tests/impl/step/fp8_step_parity.hpp"

namespace assay::impl::cuda_fp8_layouts_test {
namespace {

using namespace parity;
using spec::DataParallel;

Communicator& world() { return *tests::staged_ranks().world; }
at::Device device() { return tests::staged_ranks().device; }

/// What a rank gathers of every block against the whole weights, quantised; and the orientation that backward
/// reads.
std::string codes_off(ParameterLayout& parameters, const spec::ModelSpec& model, ParameterLayout& whole) {
  std::string found;
  for (std::int64_t block = 1; block <= model.layers; ++block) {
    const DecoderWeights& got = parameters.acquire(block, Weights::operands).decoder;
    const DecoderWeights& expected = whole.acquire(block, Weights::operands).decoder;
    found += difference(got, expected);
    const auto columns =
        quantise::quantise(expected.gate_up.values(), of_weights, quantise::Orientation::columns).columns;
    if (got.gate_up.codes().defined() &&
        !at::equal(bytes_of(quantise::transposed(got.gate_up.codes()).codes), bytes_of(columns.codes)))
      found += "gate_up has other codes in the other orientation; ";
    parameters.release(block);
    whole.release(block);
  }
  return found;
}

TEST(Fp8LayoutsCudaImpl, GatheredCodesAreThoseOfTheWhole) {
  ASSAY_NEEDS_STAGED_RANKS();
  const auto alone = make_self_communicator();
  for (const Dtype dtype : {Dtype::bf16, Dtype::f32})
    for (std::uint64_t seed = 0; seed < 6; ++seed) {
      tests::LayoutCase c{.seed = seed};
      if (seed % 2 == 0) c.linear = fp8_linears;  // else extents that are no multiples of anything
      const spec::ModelSpec model = tests::case_model(c);
      const spec::Layout layout = spec::layout_of(DataParallel::shard, world().size());
      Rank whole(model, dtype, device(), *alone, spec::Layout{}, {}, {.seed = seed});
      Rank rank(model, dtype, device(), world(), layout, fp8_linears, {.seed = seed});
      EXPECT_EQ(codes_off(*rank.parameters, model, *whole.parameters), "")
          << "rank " << world().rank() << ", " << tests::describe(c, layout);
      const DrawnWeights other{.seed = seed + 50, .odd = seed % 3 == 0 ? std::nan("") : 1.0};
      whole.change(other), rank.change(other);
      EXPECT_EQ(codes_off(*rank.parameters, model, *whole.parameters), "")
          << "changed, rank " << world().rank() << ", " << tests::describe(c, layout);
    }
}

struct FirstStep {
  double loss = 0;
  at::Tensor gradient;  ///< fp64, all parameters one after the other
};

/// Of this batch's micro-batches, those that `ranks` deals to this rank.
FirstStep first_step(Communicator& ranks, DataParallel data, Recipe recipe, const reference::Batch& batch) {
  const spec::ModelSpec model = fp8_model(true);
  const Fp8Case of{
      .linear = {.recipe = recipe}, .dtype = Dtype::bf16, .layout = spec::layout_of(data, ranks.size())};
  tests::StepRunner runner = fp8_runner(model, of, device(), ranks, 3);
  std::vector<reference::Batch> mine;
  const auto micro_batches = tests::micro_batches(batch, 2);
  for (std::size_t i = 0; i < micro_batches.size(); ++i)
    if (static_cast<int>(i) % ranks.size() == ranks.rank()) mine.push_back(micro_batches[i]);
  const run::StepResult result = runner.step(mine, static_cast<double>(batch.valid_tokens()), 1e-3);
  const at::Tensor whole = tests::whole_of(runner, runner.buffers().gradients).to(at::kDouble);
  std::vector<at::Tensor> parts;
  for (const spec::Parameter& p : runner.buffers().inventory.parameters)
    parts.push_back(whole.narrow(0, p.offset, p.size));
  return {result.cross_entropy, at::cat(parts)};
}

/// The same micro-batches of the same weights: a micro-batch has the same scales, activations and gradients
/// of activations wherever it runs. Only the sums over micro-batches, in fp32, run in another order: within
/// spec/metrics/scaling.md, C2, of fp32. Losses are summed in fp64.
TEST(Fp8LayoutsCudaImpl, TheFirstStepIsThatOfOneRank) {
  ASSAY_NEEDS_STAGED_RANKS();
  set_deterministic(true);
  const auto alone = make_self_communicator();
  const reference::Batch batch = tests::tiny_batch(fp8_model(true), 2 * world().size(), 64,
                                                   tests::Documents::packed, tests::Ignored::some, 71);
  const double most = spec::metrics::most_differences(Dtype::f32, static_cast<double>(batch.valid_tokens()))
                          .first_gradient_norm;
  for (const Recipe recipe : {Recipe::fp8_tensor, Recipe::fp8_block}) {
    if (const std::string why = fp8::refusal(recipe, device()); !why.empty()) {
      std::cout << why << std::endl;
      continue;
    }
    const FirstStep one = first_step(*alone, DataParallel::replicate, recipe, batch);
    for (const DataParallel data : {DataParallel::replicate, DataParallel::zero1, DataParallel::shard}) {
      const FirstStep several = first_step(world(), data, recipe, batch);
      const double off =
          (several.gradient - one.gradient).norm().item<double>() / one.gradient.norm().item<double>();
      if (world().rank() == 0)
        std::cout << to_string(recipe) << ", " << spec::to_string(data) << ": gradient off one rank's by "
                  << off << ", at most " << most << std::endl;
      EXPECT_LE(off, most) << to_string(recipe) << ", " << spec::to_string(data);
      EXPECT_NEAR(several.loss / one.loss, 1, 1e-12) << to_string(recipe) << ", " << spec::to_string(data);
    }
  }
  set_deterministic(false);
}

}  // namespace
}  // namespace assay::impl::cuda_fp8_layouts_test
