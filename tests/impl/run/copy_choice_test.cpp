// labels: unit
// parallel.gather=copy_engines and parallel.scatter=copy_engines: where they cannot work, and what they ask
// for.
#include "impl/run/start/copy_choice.hpp"

#include <gtest/gtest.h>

#include "impl/params/layouts/make_parameters.hpp"
#include "spec/error.hpp"
#include "tests/impl/comm/asked_for_copies.hpp"
#include "tests/impl/comm/thread_ranks.hpp"
#include "tests/impl/params/layout_parity.hpp"
#include "tests/support/tiny_models.hpp"

namespace assay::impl::run::copy_choice_test {
namespace {

using spec::DataParallel;

constexpr spec::MovedBy nccl = spec::MovedBy::nccl, copy_engines = spec::MovedBy::copy_engines;

std::string refusal_on_cpu(spec::MovedBy gather, spec::MovedBy scatter) {
  spec::RunConfig config;
  config.data_parallel = DataParallel::shard;
  config.gather = gather;
  config.scatter = scatter;
  const auto self = make_self_communicator();
  try {
    refuse_copies(config, spec::layout_of(DataParallel::shard, 1), at::kCPU, *self);
  } catch (const UserError& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    return error.what();
  }
  return "";
}

void expect_words(const std::string& text, const std::vector<std::string>& words) {
  for (const std::string& word : words) EXPECT_NE(text.find(word), std::string::npos) << word << ": " << text;
}

TEST(CopyChoiceImpl, TheCpuHasNoCopyEngines) {
  expect_words(refusal_on_cpu(copy_engines, nccl), {"parallel.gather=copy_engines", "weights",
                                                    "this run is on the CPU", "give parallel.gather=nccl"});
  expect_words(refusal_on_cpu(nccl, copy_engines), {"parallel.scatter=copy_engines", "gradients",
                                                    "this run is on the CPU", "give parallel.scatter=nccl"});
  EXPECT_EQ(refusal_on_cpu(nccl, nccl), "");
}

TEST(CopyChoiceImpl, SharesOfOneCopyAreOnOneHost) {
  const std::vector<std::string> one(4, "a"), two = {"a", "a", "b", "b"};
  for (const Copied& copied : {copied_weights, copied_gradients}) {
    const auto reason = [&](DataParallel data, const auto& hosts, std::int64_t shard_ranks = 0) {
      return reason_against_copies(copied, spec::layout_of(data, 4, shard_ranks), hosts);
    };
    for (const DataParallel data : {DataParallel::zero1, DataParallel::shard}) {
      EXPECT_EQ(reason(data, one), "");
      const std::string setting = copied.setting;
      expect_words(reason(data, two), {setting + "=copy_engines", copied.what, "ranks 0 and 2",
                                       "run on a and b", "parallel.data=hybrid", setting + "=nccl"});
    }
    EXPECT_EQ(reason(DataParallel::hybrid, two, 2), "");
    EXPECT_NE(reason(DataParallel::hybrid, two, 4), "");
    EXPECT_EQ(reason(DataParallel::replicate, two), "");
  }
}

/// Ranks that have no GPUs say so alike, and go on together.
TEST(CopyChoiceImpl, EnginesWithoutGpusRefuse) {
  tests::on_thread_ranks(2, [](Communicator& communicator) {
    const auto refused = [&](const std::string& setting, const auto& ask) {
      try {
        ask();
        ADD_FAILURE() << "not refused";
      } catch (const AgreedError& error) {
        EXPECT_EQ(error.code(), ExitCode::usage);
        expect_words(error.what(),
                     {"these 2 ranks go by " + communicator.engine(), "give " + setting + "=nccl"});
      }
      communicator.barrier();
    };
    refused("parallel.gather", [&] { communicator.gather_by_copies({}); });
    refused("parallel.scatter", [&] { communicator.scatter_by_copies({}, {}); });
  });
  EXPECT_EQ(make_self_communicator()->gather_by_copies({}), nullptr) << "one rank gathers nothing";
  EXPECT_EQ(make_self_communicator()->scatter_by_copies({}, {}), nullptr) << "one rank sums nothing";
}

using tests::AskedForCopies;

/// The weights that hold the shares, once, for as long as the layout lives; nothing where all are whole, and
/// nothing unless asked for. And the gradients, or their rounded copies, with room for the others' parts.
TEST(CopyChoiceImpl, TheShardGroupCopiesFromWeightsAndGradients) {
  const spec::ModelSpec model = tests::tiny_model(3);
  for (const DataParallel data :
       {DataParallel::replicate, DataParallel::zero1, DataParallel::shard, DataParallel::hybrid})
    for (const spec::Movers& by :
         {spec::Movers{}, spec::Movers{.weights = copy_engines}, spec::Movers{.gradients = copy_engines}})
      for (const at::ScalarType wire : {at::kFloat, at::kBFloat16})
        tests::on_thread_ranks(4, [&](Communicator& communicator) {
          tests::AskedCopies asked;
          AskedForCopies asking(communicator, asked);
          LayoutGroups groups(asking, spec::layout_of(data, 4, data == DataParallel::hybrid ? 2 : 0));
          const ParameterBuffers buffers =
              allocate(model, Dtype::bf16, at::kCPU, Dtype::f32, groups.layout(), groups.shard().rank());
          auto parameters = make_parameters(buffers, model, groups, wire, by);
          const std::string what(spec::to_string(data));
          const bool shares = data != DataParallel::replicate;
          ASSERT_EQ(asked.gathered.size(), shares && by.weights == copy_engines ? 1u : 0u) << what;
          for (const at::Tensor& memory : asked.gathered) EXPECT_TRUE(memory.is_same(buffers.weights));
          ASSERT_EQ(asked.scattered.size(), shares && by.gradients == copy_engines ? 1u : 0u) << what;
          EXPECT_EQ(asked.handles, static_cast<int>(asked.gathered.size() + asked.scattered.size()));
          for (const auto& [memory, staging] : asked.scattered) {
            const std::int64_t ranks = groups.shard().size(), largest = buffers.partition.largest_block();
            EXPECT_EQ(memory.scalar_type(), wire);
            EXPECT_EQ(staging.scalar_type(), wire);
            EXPECT_EQ(staging.numel(), (ranks - 1) * (largest / ranks)) << what;
            if (wire == at::kBFloat16) {
              EXPECT_EQ(memory.numel(), 2 * largest) << what;
            } else if (data == DataParallel::zero1) {
              EXPECT_TRUE(memory.is_same(buffers.gradients));
            }
          }
          asked.gathered.clear();
          asked.scattered.clear();
          parameters.reset();
          EXPECT_EQ(asked.handles, 0) << what;
        });
}

/// Every whole that is reduced lies where it was said to lie, its parts fit, and what is trained is the same.
TEST(CopyChoiceImpl, WhatIsReducedLiesInWhatIsCopiedFrom) {
  for (const DataParallel data : {DataParallel::zero1, DataParallel::shard, DataParallel::hybrid})
    for (const Dtype wire : {Dtype::f32, Dtype::bf16})
      tests::on_thread_ranks(4, [&](Communicator& communicator) {
        const auto weights_after_steps = [&](Communicator& world, const spec::Movers& by) {
          const tests::LayoutCase c{.seed = 9, .micro = 1, .accumulation = 3};
          tests::StepRunner runner(tests::tiny_model(c.seed), Dtype::bf16, at::kCPU, world,
                                   spec::layout_of(data, 4, data == DataParallel::hybrid ? 2 : 0),
                                   tests::layout_settings(), c.seed, Dtype::f32, wire,
                                   spec::Recompute::norms_swiglu, by);
          for (int step = 0; step < 3; ++step) {
            const auto whole = tests::whole_batch(c, 4, step);
            runner.step(tests::dealt(whole, c, 4, world.rank()), static_cast<double>(whole.valid_tokens()),
                        1e-2);
          }
          runner.parameters().settle_weights();
          return runner.buffers().weights.clone();
        };
        tests::AskedCopies asked;
        AskedForCopies asking(communicator, asked);
        const at::Tensor as_ever = weights_after_steps(communicator, {}),
                         by_copies = weights_after_steps(asking, {.gradients = copy_engines});
        EXPECT_TRUE(at::equal(as_ever, by_copies)) << spec::to_string(data);
        EXPECT_GT(asked.reduced, 0);
        EXPECT_EQ(asked.faults, "") << spec::to_string(data);
      });
}

}  // namespace
}  // namespace assay::impl::run::copy_choice_test
