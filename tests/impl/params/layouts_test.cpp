// labels: parity property
// Every layout trains as the reference does on the whole batch, on 1 to 8 ranks (threads), with the traffic
// of the spec's formula.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <mutex>

#include "impl/params/replica_hash.hpp"
#include "spec/plan/plan.hpp"
#include "tests/impl/comm/thread_ranks.hpp"
#include "tests/impl/params/layout_parity.hpp"

namespace assay::impl::layouts_test {
namespace {

using spec::DataParallel;
using tests::LayoutCase;

constexpr DataParallel kinds[] = {DataParallel::replicate, DataParallel::zero1, DataParallel::shard,
                                  DataParallel::hybrid};

/// The first difference that any rank finds.
std::string difference(const LayoutCase& c, const spec::Layout& layout) {
  std::mutex mutex;
  std::string first;
  tests::on_thread_ranks(static_cast<int>(layout.ranks), [&](Communicator& communicator) {
    const std::string mine = tests::difference_from_reference(c, layout, communicator, at::kCPU);
    const std::scoped_lock lock(mutex);
    if (first.empty() && !mine.empty()) first = "rank " + std::to_string(communicator.rank()) + ": " + mine;
  });
  return first;
}

spec::Layout draw_layout() {
  const auto data = *rc::gen::elementOf(std::vector<DataParallel>(std::begin(kinds), std::end(kinds)));
  if (data != DataParallel::hybrid) return spec::layout_of(data, *rc::gen::inRange<std::int64_t>(1, 9));
  const auto shard_ranks = *rc::gen::inRange<std::int64_t>(1, 5);
  return spec::layout_of(data, shard_ranks * *rc::gen::inRange<std::int64_t>(1, 8 / shard_ranks + 1),
                         shard_ranks);
}

enum class Model { dense, experts, latent };

void expect_reference(Model model) {
  const spec::Layout layout = draw_layout();
  LayoutCase c{.seed = *rc::gen::inRange<std::uint64_t>(0, 1000),
               .micro = *rc::gen::inRange<std::int64_t>(1, 3),
               .accumulation = *rc::gen::inRange<std::int64_t>(1, 4),
               .documents = *rc::gen::element(tests::Documents::whole, tests::Documents::packed),
               .ignored = *rc::gen::element(tests::Ignored::none, tests::Ignored::some,
                                            tests::Ignored::sequences, tests::Ignored::most)};
  c.experts = model == Model::experts, c.latent = model == Model::latent;
  c.recompute = *rc::gen::elementOf(spec::all_recomputes);
  const std::string found = difference(c, layout);
  if (!found.empty()) RC_FAIL(found + "\n" + tests::describe(c, layout));
}

RC_GTEST_PROP(LayoutsImpl, EveryLayoutTrainsAsTheReference, ()) { expect_reference(Model::dense); }

RC_GTEST_PROP(LayoutsImpl, EveryLayoutTrainsExpertsAsTheReference, ()) {
  static tests::FirstCases cases(50);
  if (!cases.over()) expect_reference(Model::experts);
}

RC_GTEST_PROP(LayoutsImpl, EveryLayoutTrainsLatentAttentionAsTheReference, ()) {
  static tests::FirstCases cases(50);
  if (!cases.over()) expect_reference(Model::latent);
}

/// The executor runs lists of actions, whoever made them: sums of gradients start where a block's first
/// GEMM comes, not with a number of a micro-batch.
TEST(LayoutsImpl, PassesInAnyOrderTrainAsTheReference) {
  const std::vector<std::vector<int>> orders = {{0, 1, -1, -2}, {0, 1, -2, -1}, {1, -2, 0, -1}};
  for (const std::vector<int>& order : orders)
    for (const spec::Layout& layout :
         {spec::layout_of(DataParallel::replicate, 1), spec::layout_of(DataParallel::replicate, 2),
          spec::layout_of(DataParallel::zero1, 2), spec::layout_of(DataParallel::shard, 2),
          spec::layout_of(DataParallel::hybrid, 4, 2)})
      for (const std::uint64_t seed : {3, 7}) {
        const LayoutCase c{.seed = seed, .micro = 1, .accumulation = 2, .steps = 3, .order = order};
        EXPECT_EQ(difference(c, layout), "")
            << tests::describe(c, layout) << ", first micro-batch " << order[0] << ", last " << order[3];
      }
}

TEST(LayoutsImpl, EightRanksOfEveryKindTrainAsTheReference) {
  for (DataParallel data : kinds) {
    const spec::Layout layout = spec::layout_of(data, 8, data == DataParallel::hybrid ? 4 : 0);
    const LayoutCase c{.seed = 7, .micro = 1, .accumulation = 2, .ignored = tests::Ignored::sequences};
    EXPECT_EQ(difference(c, layout), "") << tests::describe(c, layout);
  }
}

/// Shards are quantised by their own rank and gathered as codes: in every split the training of one rank, and
/// the formula's bytes. What begins a document attends to its own value alone, and a value of latent
/// attention lies on a tie of codes more often than not: there documents are whole.
void expect_fp8_trains_as_the_reference(const std::vector<std::uint64_t>& seeds, Model model) {
  for (const std::uint64_t seed : seeds)
    for (const spec::Layout& layout :
         {spec::layout_of(DataParallel::replicate, 2), spec::layout_of(DataParallel::shard, 3),
          spec::layout_of(DataParallel::hybrid, 4, 2)}) {
      LayoutCase c{.seed = seed,
                   .accumulation = 1 + static_cast<std::int64_t>(seed % 2),
                   .documents = model == Model::latent ? tests::Documents::whole
                                                       : static_cast<tests::Documents>(seed % 2),
                   .ignored = tests::Ignored::some,
                   .steps = 2,
                   .recompute = seed == 3 ? spec::Recompute::block : spec::Recompute::norms_swiglu,
                   .experts = model == Model::experts,
                   .latent = model == Model::latent,
                   .linear = {.recipe = spec::quantise::Recipe::fp8_tensor}};
      if (seed == 2) c.linear.unquantised = {1};
      EXPECT_EQ(difference(c, layout), "") << tests::describe(c, layout);
    }
}

TEST(LayoutsImpl, Fp8TrainsAsTheReferenceInEveryLayout) {
  expect_fp8_trains_as_the_reference({1, 2, 3}, Model::dense);
}

/// Queries of the first are not compressed; those of an odd seed have experts.
TEST(LayoutsImpl, Fp8TrainsLatentAttentionAsTheReferenceInEveryLayout) {
  expect_fp8_trains_as_the_reference({4, 5}, Model::latent);
}

TEST(LayoutsImpl, Fp8TrainsBesideExpertsAsTheReferenceInEveryLayout) {
  expect_fp8_trains_as_the_reference({3}, Model::experts);
}

/// On every rank the gains that the blocks read are those that the optimizer adds to, unrounded.
void expect_gains_of(tests::StepRunner& runner, const at::Tensor& master) {
  const ParameterBuffers& buffers = runner.buffers();
  for (const spec::Parameter& gain : buffers.gains.offsets.parameters)
    EXPECT_TRUE(at::equal(buffers.gains.values.narrow(0, gain.offset, gain.size),
                          master.narrow(0, buffers.inventory.at(gain.name).offset, gain.size).to(at::kFloat)))
        << gain.name;
}

/// Bits of the whole weights after some steps in low precision, and whether replicas agree.
std::vector<at::Tensor> trained(const spec::Layout& layout, Dtype dtype, Dtype states, Dtype wire,
                                int steps) {
  std::mutex mutex;
  std::vector<at::Tensor> out(2);
  const LayoutCase c{.seed = 3, .micro = 1, .accumulation = 2};
  tests::on_thread_ranks(static_cast<int>(layout.ranks), [&](Communicator& communicator) {
    tests::StepRunner runner(tests::tiny_model(c.seed), dtype, at::kCPU, communicator, layout,
                             tests::layout_settings(), c.seed, states, wire);
    for (int step = 0; step < steps; ++step) {
      const auto whole = tests::whole_batch(c, layout.ranks, step);
      runner.step(tests::dealt(whole, c, layout.ranks, communicator.rank()),
                  static_cast<double>(whole.valid_tokens()), 3e-3);
    }
    runner.parameters().settle_weights();
    EXPECT_EQ(compare_replicas(runner.buffers(), runner.groups()).odd, "");
    const at::Tensor weights = tests::whole_of(runner, runner.buffers().weights),
                     moment = tests::whole_of(runner, runner.buffers().moment2);
    if (dtype == Dtype::bf16) expect_gains_of(runner, tests::whole_of(runner, runner.buffers().master));
    // Without the padding, which differs between layouts.
    std::vector<at::Tensor> parts, moments;
    for (const spec::Parameter& p : runner.buffers().inventory.parameters) {
      parts.push_back(weights.narrow(0, p.offset, p.size));
      moments.push_back(moment.narrow(0, p.offset, p.size));
    }
    const std::scoped_lock lock(mutex);
    out = {at::cat(parts), at::cat(moments)};
  });
  return out;
}

TEST(LayoutsImpl, InitialWeightsAreTheSameBitsInEveryLayout) {
  for (const auto& [dtype, states] :
       {std::pair{Dtype::f64, Dtype::f64}, std::pair{Dtype::f32, Dtype::f32},
        std::pair{Dtype::bf16, Dtype::f32}, std::pair{Dtype::bf16, Dtype::bf16}}) {
    const auto alone = trained(spec::Layout{}, dtype, states, Dtype::f32, 0);
    for (DataParallel data : kinds)
      EXPECT_TRUE(at::equal(trained(spec::layout_of(data, 4, data == DataParallel::hybrid ? 2 : 0), dtype,
                                    states, Dtype::f32, 0)[0],
                            alone[0]))
          << spec::to_string(data);
  }
}

TEST(LayoutsImpl, BlocksOfBf16ReadTheirGainsInFp32) {
  for (DataParallel data : kinds) {
    const spec::Layout layout = spec::layout_of(data, 4, data == DataParallel::hybrid ? 2 : 0);
    const LayoutCase c{.seed = 3, .micro = 1, .accumulation = 1};
    tests::on_thread_ranks(4, [&](Communicator& communicator) {
      const spec::ModelSpec model = tests::tiny_model(c.seed);
      tests::StepRunner runner(model, Dtype::bf16, at::kCPU, communicator, layout, tests::layout_settings(),
                               c.seed);
      const auto whole = tests::whole_batch(c, layout.ranks, 0);
      const auto step = [&] {
        return runner.step(tests::dealt(whole, c, layout.ranks, communicator.rank()),
                           static_cast<double>(whole.valid_tokens()), 1e-4);
      };
      step();
      // Too small a step to reach the next number in bf16.
      EXPECT_FALSE(at::equal(runner.buffers().gains.values,
                             runner.buffers().gains.values.to(at::kBFloat16).to(at::kFloat)));
      // Without gains every logit is 0.
      runner.buffers().gains.values.zero_();
      EXPECT_NEAR(step().cross_entropy, std::log(static_cast<double>(model.vocab)), 1e-6)
          << spec::to_string(data);
    });
  }
}

TEST(LayoutsImpl, StateTakesWhatThePlanSays) {
  const spec::ModelSpec model = tests::tiny_model(4);
  for (DataParallel data : kinds)
    for (const auto& [dtype, states] : {std::pair{Dtype::f64, Dtype::f64}, std::pair{Dtype::bf16, Dtype::f32},
                                        std::pair{Dtype::bf16, Dtype::bf16}}) {
      const spec::Layout layout = spec::layout_of(data, 6, data == DataParallel::hybrid ? 3 : 0);
      spec::memory::Setting setting;
      setting.model = model, setting.dtype = dtype, setting.states = states, setting.layout = layout;
      const auto plan = spec::memory::plan(setting);
      Count planned;
      for (const spec::memory::Item& item : plan.items)
        for (const char* name : {"weights", "gradients", "master", "moment1", "moment2", "gains"})
          if (item.name == name) planned += item.bytes;
      const std::int64_t last = layout.shard_ranks - 1;
      EXPECT_EQ(planned.to_int64(),
                allocate(model, dtype, at::kCPU, states, {.layout = layout, .rank = last}).bytes())
          << spec::to_string(data);
    }
}

/// Two ranks add two numbers, in whatever order: the sum has one value, and so have weights that only sums
/// of two differ in. More micro-batches would be added in another order when sharded.
TEST(LayoutsImpl, StatesInBf16AreRoundedByTheSameChanceInEveryLayout) {
  const auto one_step = [](DataParallel data) {
    return trained(spec::layout_of(data, 2), Dtype::bf16, Dtype::bf16, Dtype::f32, 1);
  };
  const auto replicated = one_step(DataParallel::replicate), zero1 = one_step(DataParallel::zero1);
  EXPECT_TRUE(at::equal(replicated[0], zero1[0]));
  EXPECT_TRUE(at::equal(replicated[1], zero1[1]));
  // Sharded gradients are added up over micro-batches in another order: a last bit here and there, where
  // other chances would change about half of all entries.
  const auto shard = one_step(DataParallel::shard);
  const double changed = (shard[0] != replicated[0]).to(at::kDouble).mean().item<double>();
  EXPECT_LT(changed, 0.01);
}

/// A gradient that is rounded to bf16 before it is summed over n ranks is off by its own rounding and that of
/// n - 1 sums, relative to the sum of magnitudes; the second moment after one step is (1 - beta2) g^2, scaled
/// by the clip coefficient alike.
TEST(LayoutsImpl, SumsInBf16StayWithinTheirRounding) {
  for (DataParallel data : kinds) {
    const spec::Layout layout = spec::layout_of(data, 4, data == DataParallel::hybrid ? 2 : 0);
    const auto exact = trained(layout, Dtype::bf16, Dtype::f32, Dtype::f32, 1),
               rounded = trained(layout, Dtype::bf16, Dtype::f32, Dtype::bf16, 1);
    const at::Tensor a = exact[1].to(at::kDouble).sqrt(), b = rounded[1].to(at::kDouble).sqrt();
    const double error = ((a - b).norm() / a.norm()).item<double>();
    EXPECT_GT(error, 1e-5) << spec::to_string(data) << ": the wire is not bf16";
    EXPECT_LT(error, gamma(8, unit_roundoff(Dtype::bf16))) << spec::to_string(data);
  }
}

TEST(LayoutsImpl, TheFirstStepInBf16IsReplicatesButForTheOrderOfSums) {
  for (DataParallel data : kinds)
    tests::on_thread_ranks(4, [&](Communicator& communicator) {
      const LayoutCase c{.seed = 7, .micro = 1, .accumulation = 2, .ignored = tests::Ignored::some};
      const spec::Layout layout = spec::layout_of(data, 4, data == DataParallel::hybrid ? 2 : 0);
      EXPECT_EQ(tests::first_step_off_replicates(c, layout, communicator, at::kCPU), "")
          << spec::to_string(data) << ", rank " << communicator.rank();
    });
}

}  // namespace
}  // namespace assay::impl::layouts_test
