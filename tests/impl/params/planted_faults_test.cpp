// labels: fault
// Each way in which ranks can train something else than one rank would is planted, and found by what compares
// layouts with the reference. Each test first shows that nothing is found without its fault.
#include <gtest/gtest.h>

#include <mutex>

#include "impl/params/replica_hash.hpp"
#include "tests/impl/comm/thread_ranks.hpp"
#include "tests/impl/params/layout_parity.hpp"

namespace assay::impl::planted_faults_test {
namespace {

using spec::Collective;
using spec::DataParallel;
using tests::LayoutCase;

const spec::Layout replicate = spec::layout_of(DataParallel::replicate, 3),
                   zero1 = spec::layout_of(DataParallel::zero1, 3),
                   shard = spec::layout_of(DataParallel::shard, 3),
                   hybrid = spec::layout_of(DataParallel::hybrid, 4, 2);

/// Uneven counts of valid tokens, so that a mean of means is no mean.
constexpr LayoutCase uneven{.seed = 12,
                            .micro = 1,
                            .accumulation = 2,
                            .documents = tests::Documents::packed,
                            .ignored = tests::Ignored::some,
                            .steps = 2};

/// In FP8, where sharded layouts gather codes.
constexpr LayoutCase in_fp8{.seed = 12,
                            .micro = 1,
                            .accumulation = 2,
                            .ignored = tests::Ignored::some,
                            .steps = 2,
                            .linear = {.recipe = spec::quantise::Recipe::fp8_tensor}};

using Spoil = std::function<void(run::StepInput&, int rank)>;

/// What each rank finds; `dropped`: of rank 1's collectives.
std::vector<std::string> found(const spec::Layout& layout, tests::Spoiling dropped = {},
                               const Spoil& spoil = {}, const LayoutCase& of = uneven) {
  std::vector<std::string> all(static_cast<std::size_t>(layout.ranks));
  tests::on_thread_ranks(static_cast<int>(layout.ranks), [&](Communicator& communicator) {
    const int rank = communicator.rank();
    tests::Spoiling mine = rank == 1 ? dropped : tests::Spoiling{};
    tests::SpoilingCommunicator spoiling(communicator, mine);
    all[static_cast<std::size_t>(rank)] =
        tests::difference_from_reference(of, layout, spoiling, at::kCPU, [&](run::StepInput& input) {
          if (spoil) spoil(input, rank);
        });
  });
  return all;
}

bool nothing(const std::vector<std::string>& all) {
  return std::all_of(all.begin(), all.end(), [](const std::string& text) { return text.empty(); });
}

std::string some(const std::vector<std::string>& all) {
  for (const std::string& text : all)
    if (!text.empty()) return text;
  return "nothing was found";
}

TEST(PlantedFaultsImpl, NothingIsFoundWhereNothingIsPlanted) {
  for (const spec::Layout& layout : {replicate, zero1, shard, hybrid}) EXPECT_TRUE(nothing(found(layout)));
}

TEST(PlantedFaultsImpl, AMeanOfMeansIsCaught) {
  for (const spec::Layout& layout : {replicate, zero1, shard, hybrid}) {
    // Every rank divides by its own count, and the sum by the number of ranks.
    const Spoil mean_of_means = [&](run::StepInput& input, int) {
      std::int64_t mine = 0;
      for (const TokenBatch& batch : input.micro_batches)
        mine += at::count_nonzero(batch.targets != -100).item<std::int64_t>();
      input.valid_tokens = static_cast<double>(std::max<std::int64_t>(1, mine) * layout.ranks);
    };
    EXPECT_NE(some(found(layout, {}, mean_of_means)).find("step 0: loss is off"), std::string::npos)
        << spec::to_string(layout.data);
  }
}

TEST(PlantedFaultsImpl, ARankWithOtherDataIsCaught) {
  for (const spec::Layout& layout : {replicate, zero1, shard, hybrid}) {
    // Rank 1 reads its micro-batches in another order of targets than the rest of the job agreed on.
    const Spoil other_order = [](run::StepInput& input, int rank) {
      if (rank == 1) input.micro_batches[0].targets = input.micro_batches[0].targets.flip(0);
    };
    EXPECT_NE(some(found(layout, {}, other_order)).find("step 0: loss is off"), std::string::npos)
        << spec::to_string(layout.data);
  }
}

TEST(PlantedFaultsImpl, ASkippedReductionIsCaught) {
  for (const auto& [layout, kind] :
       {std::pair{replicate, Collective::all_reduce}, std::pair{zero1, Collective::reduce_scatter},
        std::pair{shard, Collective::reduce_scatter}, std::pair{hybrid, Collective::reduce_scatter},
        std::pair{hybrid, Collective::all_reduce}}) {
    const auto all = found(layout, {.kind = kind, .number = 1, .least = 3});
    EXPECT_TRUE(std::any_of(all.begin(), all.end(),
                            [](const std::string& text) { return text.find("step 0: ") == 0; }))
        << spec::to_string(layout.data) << ": " << some(all);
  }
}

TEST(PlantedFaultsImpl, AStaleParameterIsCaught) {
  for (const spec::Layout& layout : {zero1, shard, hybrid}) {
    // The second block's gather keeps what was there before.
    const auto all = found(layout, {.kind = Collective::all_gather, .number = 1, .least = 3});
    EXPECT_FALSE(nothing(all)) << spec::to_string(layout.data);
  }
}

/// Rank 1 scales the codes of a linear, its own and those that it gathers, by the amax of what it owns.
TEST(PlantedFaultsImpl, AnAmaxOfOneRankAloneIsCaught) {
  for (const spec::Layout& layout : {shard, hybrid}) {
    EXPECT_TRUE(nothing(found(layout, {}, {}, in_fp8))) << some(found(layout, {}, {}, in_fp8));
    for (const int update : {0, 1}) {
      const auto all =
          found(layout, {.kind = Collective::all_reduce, .reduction = Reduction::max, .number = update}, {},
                in_fp8);
      EXPECT_NE(some(all).find("step " + std::to_string(update) + ": loss is off"), std::string::npos)
          << spec::to_string(layout.data) << ": " << some(all);
    }
  }
}

/// The codes of one block stay those of another: bytes that no rounding explains.
TEST(PlantedFaultsImpl, CodesThatDoNotArriveAreCaught) {
  const auto all = found(shard, {.kind = Collective::all_gather, .number = 1}, {}, in_fp8);
  EXPECT_NE(some(all).find("step 0: loss is off"), std::string::npos) << some(all);
}

TEST(PlantedFaultsImpl, AccumulationSyncedEveryMicroBatchIsCaught) {
  /// Begins its reductions behind every backward.
  class Impatient final : public ParameterLayout {
   public:
    explicit Impatient(ParameterLayout& inner) : inner_(inner) {}
    const BlockWeights& acquire(std::int64_t block, Weights as) override { return inner_.acquire(block, as); }
    void release(std::int64_t block) override { inner_.release(block); }
    BlockGradients gradients(std::int64_t block) override { return inner_.gradients(block); }
    void gradients_ready(std::int64_t block) override { inner_.gradients_ready(block); }
    void begin_step(linear::GradientSum first) override { inner_.begin_step(first); }
    void begin_forward() override { inner_.begin_forward(); }
    void begin_backward(bool) override { inner_.all_reduce(), inner_.begin_backward(true); }
    void all_reduce() override { inner_.all_reduce(); }
    at::Tensor sum_of_squares() override { return inner_.sum_of_squares(); }
    std::string non_finite_sum() const override { return inner_.non_finite_sum(); }

   private:
    ParameterLayout& inner_;
  };
  const spec::Layout layout = spec::layout_of(DataParallel::replicate, 2);
  const spec::ModelSpec model = tests::tiny_model(uneven.seed);
  for (const bool planted : {false, true}) {
    tests::on_thread_ranks(2, [&](Communicator& communicator) {
      spec::Volume volume;
      tests::CountingCommunicator counting(communicator, volume);
      LayoutGroups groups(counting, layout);
      ParameterBuffers buffers = allocate(model, Dtype::f64, at::kCPU);
      initialise(buffers, model, uneven.seed);
      const auto right = make_parameters(buffers, model, groups, at::kDouble);
      Impatient wrong(*right);
      ParameterLayout& parameters = planted ? static_cast<ParameterLayout&>(wrong) : *right;
      Model trained(model, parameters, model.context, at::kDouble, at::kCPU);
      run::PhaseClock clock(at::kCPU);
      run::Executor executor(trained, buffers, parameters, groups, tests::layout_settings(), clock);
      const auto whole = tests::whole_batch(uneven, 2, 0);
      run::StepInput input{0, 1e-3, static_cast<double>(whole.valid_tokens()), {}};
      for (const auto& batch : tests::dealt(whole, uneven, 2, communicator.rank()))
        input.micro_batches.push_back(tests::token_batch(batch, at::kCPU));
      executor.run(input, spec::step_actions(uneven.accumulation, layout));
      const auto formula = tests::total(
          spec::step_volume(spec::share(model, {.layout = layout}), {.accumulation = uneven.accumulation,
                                                                     .gradient_bytes = 8,
                                                                     .weight_bytes = 8,
                                                                     .tied_embeddings = false}));
      EXPECT_EQ(volume == formula, !planted)
          << "bytes all-reduced " << volume[Collective::all_reduce].to_string();
      const auto expected = reference::step_gradients(reference::initial_state(model, uneven.seed).parameters,
                                                      model, {whole}, tests::layout_settings().z_loss);
      EXPECT_EQ(tests::distance(buffers.gradients, buffers.inventory, expected.gradients) < 1e-11, !planted);
    });
  }
}

TEST(PlantedFaultsImpl, ACopyThatDiffersInOneBitIsNamed) {
  for (const spec::Layout& layout : {replicate, zero1, hybrid}) {
    for (const int odd : {-1, 0, 1, 2}) {
      tests::on_thread_ranks(static_cast<int>(layout.ranks), [&](Communicator& communicator) {
        LayoutGroups groups(communicator, layout);
        ParameterBuffers buffers = allocate(tests::tiny_model(2), Dtype::bf16, at::kCPU, Dtype::f32,
                                            {.layout = layout, .rank = communicator.rank()});
        initialise(buffers, tests::tiny_model(2), 2);
        if (communicator.rank() == odd) {
          const at::Tensor bits = buffers.weights.view(at::kShort);
          bits[bits.numel() / 2] = bits[bits.numel() / 2].bitwise_xor(1);
        }
        // Of two copies that differ, none is in the minority: the later one is named.
        const int named = layout == hybrid ? std::max(odd, odd ^ 2) : odd;
        EXPECT_EQ(compare_replicas(buffers, groups).odd, odd < 0 ? "" : "rank " + std::to_string(named))
            << spec::to_string(layout.data);
      });
    }
  }
}

TEST(PlantedFaultsImpl, ARouterBiasThatDiffersIsNamed) {
  spec::ModelSpec model = tests::routed_model(0);
  for (std::uint64_t seed = 1; !model.experts->router_bias; ++seed) model = tests::routed_model(seed);
  for (const spec::Layout& layout : {replicate, zero1})
    tests::on_thread_ranks(static_cast<int>(layout.ranks), [&](Communicator& communicator) {
      LayoutGroups groups(communicator, layout);
      ParameterBuffers buffers =
          allocate(model, Dtype::bf16, at::kCPU, Dtype::f32, {.layout = layout, .rank = communicator.rank()});
      initialise(buffers, model, 2);
      if (communicator.rank() == 1) buffers.router_biases[0][0] = 0x1p-20;
      EXPECT_EQ(compare_replicas(buffers, groups).odd, "rank 1");
    });
}

}  // namespace
}  // namespace assay::impl::planted_faults_test
