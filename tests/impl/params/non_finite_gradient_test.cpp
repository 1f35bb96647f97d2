// labels: fault
// A number of one rank that is not finite: every rank names that rank, in any layout, and a step in which all
// numbers are finite pays nothing for it.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "impl/metrics/op_times.hpp"
#include "tests/impl/comm/thread_ranks.hpp"
#include "tests/impl/params/layout_parity.hpp"

namespace assay::impl::non_finite_gradient_test {
namespace {

using spec::DataParallel;

constexpr tests::LayoutCase two_passes{.seed = 3, .micro = 1, .accumulation = 2};

const std::vector<spec::Layout>& layouts() {
  static const std::vector<spec::Layout> all = {
      spec::layout_of(DataParallel::replicate, 2), spec::layout_of(DataParallel::zero1, 2),
      spec::layout_of(DataParallel::shard, 2), spec::layout_of(DataParallel::hybrid, 4, 2)};
  return all;
}

/// One step of a rank; what it refuses, or nothing.
std::string refused(tests::StepRunner& runner, const spec::Layout& layout, int rank,
                    const std::function<void(run::StepInput&)>& change = {}) {
  const auto whole = tests::whole_batch(two_passes, layout.ranks, 0);
  try {
    runner.step(tests::dealt(whole, two_passes, layout.ranks, rank),
                static_cast<double>(whole.valid_tokens()), 1e-3, change);
  } catch (const run::NonFiniteError& error) {
    return error.what();
  }
  return "";
}

bool names_a_gradient(const std::string& text, const spec::Inventory& inventory) {
  return std::any_of(inventory.parameters.begin(), inventory.parameters.end(), [&](const auto& parameter) {
    return text.find("gradient of " + parameter.name + " is not finite") != std::string::npos;
  });
}

TEST(NonFiniteGradientImpl, EveryLayoutNamesTheRankAndAParameterAndGoesOnAfterIt) {
  for (const spec::Layout& layout : layouts())
    tests::on_thread_ranks(static_cast<int>(layout.ranks), [&](Communicator& communicator) {
      tests::StepRunner runner(tests::tiny_model(two_passes.seed), Dtype::f32, at::kCPU, communicator, layout,
                               tests::layout_settings(), two_passes.seed);
      const at::Tensor before = runner.buffers().master.clone();
      const std::string text = refused(runner, layout, communicator.rank(), [&](run::StepInput& input) {
        if (communicator.rank() == 1) input.valid_tokens = std::numeric_limits<double>::min();
      });
      EXPECT_NE(text.find("rank 1: loss is "), std::string::npos) << text;
      EXPECT_TRUE(names_a_gradient(text, runner.buffers().inventory)) << text;
      for (const char* other : {"rank 0:", "rank 2:", "rank 3:"})
        EXPECT_EQ(text.find(other), std::string::npos) << text;
      EXPECT_TRUE(at::equal(runner.buffers().master, before)) << "the update changed weights";
      EXPECT_EQ(refused(runner, layout, communicator.rank()), "") << "the next step is as any other";
    });
}

/// Makes one sum of gradients that is not finite out of finite ones, once.
class OnceWrong : public tests::ForwardingCommunicator {
 public:
  OnceWrong(Communicator& inner, bool& spoils) : ForwardingCommunicator(inner), spoils_(spoils) {}

  Ticket begin(const Request& request) override {
    if (spec::facts_of(request.collective).reduces && request.reduction == Reduction::sum)
      spoil(request.input);
    return ForwardingCommunicator::begin(request);
  }
  std::unique_ptr<Communicator> group(const std::vector<std::int64_t>& ranks) override {
    return std::make_unique<tests::Owning<OnceWrong, bool>>(inner().group(ranks), spoils_);
  }

 private:
  void spoil(const at::Tensor& tensor) {
    constexpr std::int64_t beyond_losses = 2;
    if (spoils_ && tensor.numel() > beyond_losses) {
      at::Tensor(tensor).fill_(std::numeric_limits<double>::quiet_NaN());
      spoils_ = false;
    }
  }
  bool& spoils_;
};

TEST(NonFiniteGradientImpl, ANumberThatIsWrongOnceIsNoGradientsFault) {
  for (const spec::Layout& layout : layouts())
    tests::on_thread_ranks(static_cast<int>(layout.ranks), [&](Communicator& communicator) {
      bool spoils = false;
      OnceWrong wrong(communicator, spoils);
      tests::StepRunner runner(tests::tiny_model(two_passes.seed), Dtype::f32, at::kCPU, wrong, layout,
                               tests::layout_settings(), two_passes.seed);
      spoils = communicator.rank() == 1;
      const std::string text = refused(runner, layout, communicator.rank());
      EXPECT_FALSE(spoils);
      EXPECT_NE(text.find("run again, the same step is finite on every rank"), std::string::npos) << text;
      EXPECT_EQ(text.find("gradient of "), std::string::npos) << text;
    });
}

TEST(NonFiniteGradientImpl, AFiniteStepAddsUpNoSquaresButThoseOfItsNorm) {
  for (const spec::Layout& layout : layouts())
    tests::on_thread_ranks(static_cast<int>(layout.ranks), [&](Communicator& communicator) {
      tests::StepRunner runner(tests::tiny_model(two_passes.seed), Dtype::f32, at::kCPU, communicator, layout,
                               tests::layout_settings(), two_passes.seed);
      metrics::OpClock clock(at::kCPU);
      EXPECT_EQ(refused(runner, layout, communicator.rank()), "");
      double calls = 0;
      for (const auto& part : clock.times().parts)
        if (part.op == spec::time::StepOp::clip_grad_norm) calls += part.calls;
      const ParameterBuffers& buffers = runner.buffers();
      const std::size_t of_norm =
          layout.shards_state() ? buffers.partition.runs(buffers.shard_rank).size() : 1;
      EXPECT_EQ(calls, static_cast<double>(of_norm) + 1) << spec::to_string(layout.data);
    });
}

}  // namespace
}  // namespace assay::impl::non_finite_gradient_test
