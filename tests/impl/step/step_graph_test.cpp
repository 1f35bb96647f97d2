// labels: unit property
// What is captured of a step and replayed, with a recorder that keeps the calls themselves: work that read
// anything of a step but its batch and its numbers would give other weights. That CUDA does the same is shown
// on a GPU (cuda/step_graph_test.cpp).
#include "impl/step/step_graph.hpp"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <stdexcept>

#include "impl/metrics/executed_flops.hpp"
#include "impl/metrics/op_times.hpp"
#include "spec/error.hpp"
#include "tests/impl/step/replay_checks.hpp"

namespace assay::impl::run::step_graph_test {
namespace {

/// How often; it outlives the recorder, which ends with its run.
struct Counts {
  int replays = 0, forgotten = 0;
};

/// Keeps calls, and makes them again.
class Calls final : public StepCapture {
 public:
  explicit Calls(int not_ready = 0, int fail_at = -1) : not_ready_(not_ready), fail_at_(fail_at) {}
  void on_its_stream(const std::function<void()>& step) override { step(); }
  bool ready() const override { return --not_ready_ < 0; }
  void capture(StepPart part, const std::function<void()>& work) override {
    if (static_cast<int>(kept_.size()) == fail_at_) throw std::runtime_error("no room\nand more");
    kept_[part] = work;
  }
  void replay(StepPart part) override {
    ++counts->replays;
    kept_.at(part)();
  }
  void forget() override {
    kept_.clear();
    ++counts->forgotten;
  }
  std::string size() const override { return std::to_string(kept_.size()) + " calls"; }

  const std::shared_ptr<Counts> counts = std::make_shared<Counts>();

 private:
  std::map<StepPart, std::function<void()>> kept_;
  mutable int not_ready_;
  const int fail_at_;
};

TEST(StepGraphImpl, ReplayedStepsHaveTheBitsOfOthers) {
  for (const parity::ReplayCase& c : parity::replay_cases()) {
    const auto eager = parity::replay_run(c, at::kCPU, nullptr);
    auto recorder = std::make_unique<Calls>();
    const std::shared_ptr<const Counts> counts = recorder->counts;
    const auto replayed = parity::replay_run(c, at::kCPU, std::move(recorder));
    parity::expect_same(eager, replayed, c.name);
    EXPECT_EQ(counts->replays, (parity::replay_steps - 2) * (2 * parity::replay_passes + 2)) << c.name;
    ASSERT_EQ(replayed.notices.size(), 1u);
    EXPECT_NE(replayed.notices[0].find("steps from 3 on are replayed"), std::string::npos);
    EXPECT_NE(replayed.notices[0].find("4 calls"), std::string::npos);
  }
}

// The comparison can fail: another learning rate at one step shows.
TEST(StepGraphImpl, AnotherNumberOfOneStepIsSeen) {
  const parity::ReplayCase c = parity::replay_cases().front();
  const auto once = parity::replay_run(c, at::kCPU, nullptr),
             other = parity::replay_run(c, at::kCPU, nullptr, 1e-7);
  EXPECT_FALSE(at::equal(once.master, other.master));
}

TEST(StepGraphImpl, RecordingWaitsUntilTheRecorderIsReady) {
  auto recorder = std::make_unique<Calls>(/*not_ready=*/2);
  const std::shared_ptr<const Counts> counts = recorder->counts;
  parity::replay_run(parity::replay_cases().front(), at::kCPU, std::move(recorder));
  EXPECT_EQ(counts->replays, (parity::replay_steps - 4) * (2 * parity::replay_passes + 2));
}

TEST(StepGraphImpl, StepsGoOnWhereRecordingFailsAndTheReasonIsTold) {
  const parity::ReplayCase c = parity::replay_cases().front();
  const auto eager = parity::replay_run(c, at::kCPU, nullptr);
  for (int part = 0; part < 4; ++part) {
    auto recorder = std::make_unique<Calls>(0, part);
    const std::shared_ptr<const Counts> counts = recorder->counts;
    const auto result = parity::replay_run(c, at::kCPU, std::move(recorder));
    parity::expect_same(eager, result, "failed at part " + std::to_string(part));
    EXPECT_EQ(counts->replays, 0);
    EXPECT_EQ(counts->forgotten, 1);
    EXPECT_EQ(result.notices, std::vector<std::string>{"steps are not captured, and run as before: no room"});
  }
}

TEST(StepGraphImpl, StepsWhoseOpsAreTimedAreNotReplayed) {
  auto recorder = std::make_unique<Calls>();
  const std::shared_ptr<const Counts> counts = recorder->counts;
  const metrics::OpClock clock(at::kCPU);
  parity::replay_run(parity::replay_cases().front(), at::kCPU, std::move(recorder));
  EXPECT_EQ(counts->replays, 0);
}

/// Counts as if it were a GPU: capture runs nothing, and so does replaying, for the host.
class Silent final : public StepCapture {
 public:
  void on_its_stream(const std::function<void()>& step) override { step(); }
  bool ready() const override { return true; }
  void capture(StepPart, const std::function<void()>& work) override { work(); }
  void replay(StepPart) override {}
  void forget() override {}
  std::string size() const override { return ""; }
};

TEST(StepGraphImpl, ReplayedFlopsAreCountedAtEachReplayAndNotWhenTheyAreRecorded) {
  const parity::ReplayCase c = parity::replay_cases().front();
  const auto flops_of_three = [&](std::unique_ptr<StepCapture> recorder) {
    parity::ReplayTrainer trainer(c, at::kCPU);
    if (recorder) trainer.executor().capture_with(std::move(recorder));
    std::vector<Count> all;
    for (int step = 0; step < 3; ++step) {
      const metrics::FlopCounter counter;
      trainer.step(step);
      all.push_back(counter.measured().total());
    }
    return all;
  };
  const auto eager = flops_of_three(nullptr), replayed = flops_of_three(std::make_unique<Silent>());
  EXPECT_GT(eager[0], Count(0));
  EXPECT_EQ(eager, replayed);
}

/// Two micro-batches of two sequences, with documents of `length` tokens.
reference::Batch documents_of(const spec::ModelSpec& model, std::int64_t length, std::uint64_t seed) {
  constexpr std::int64_t B = 4, T = 96;
  auto batch = tests::tiny_batch(model, B, T, tests::Documents::whole, tests::Ignored::some, seed);
  for (std::int64_t n = 0; n < B * T; ++n) {
    batch.documents.push_back(n % T / length);
    batch.positions[static_cast<std::size_t>(n)] = n % T % length;
  }
  return batch;
}

/// Weights after steps of documents of these lengths, with and without a recorder, and what the recorder did.
struct OfLengths {
  at::Tensor eager, replayed;
  std::vector<std::string> notices;
  int replays = 0, forgotten = 0;
  explicit OfLengths(const std::vector<std::int64_t>& lengths) {
    auto recorder = std::make_unique<Calls>();
    const std::shared_ptr<const Counts> counts = recorder->counts;
    eager = train(lengths, nullptr);
    replayed = train(lengths, std::move(recorder));
    replays = counts->replays, forgotten = counts->forgotten;
  }

 private:
  at::Tensor train(const std::vector<std::int64_t>& lengths, std::unique_ptr<StepCapture> recorder) {
    spec::ModelSpec model = tests::tiny_model(3);
    model.context = 96;
    const auto communicator = make_self_communicator();
    tests::StepRunner trainer(
        model, Dtype::f64, at::kCPU, *communicator,
        {.adamw = {.beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .weight_decay = 0.1}, .clip = 1}, 1);
    if (recorder) trainer.executor().capture_with(std::move(recorder));
    for (std::size_t step = 0; step < lengths.size(); ++step) {
      const auto batch = documents_of(model, lengths[step], step);
      trainer.step(tests::micro_batches(batch, 2), static_cast<double>(batch.valid_tokens()), 1e-3);
    }
    notices = trainer.executor().new_notices();
    return trainer.buffers().weights.clone();
  }
};

// 192 tokens of a micro-batch have 64 places; documents of two tokens need 96, and get 128.
TEST(StepGraphImpl, AStepWhoseDocumentsNeedOtherPlacesRunsAsItIsAndTheNextIsRecordedAnew) {
  const OfLengths run({50, 7, 9, 96, 2, 30, 8});
  EXPECT_TRUE(at::equal(run.eager, run.replayed));
  EXPECT_EQ(run.forgotten, 1);
  EXPECT_EQ(run.replays, (2 + 2) * (2 * 2 + 2));
  ASSERT_EQ(run.notices.size(), 2u);
  EXPECT_NE(run.notices[0].find("steps from 3 on are replayed"), std::string::npos) << run.notices[0];
  EXPECT_NE(run.notices[1].find("steps from 6 on are replayed"), std::string::npos) << run.notices[1];
}

TEST(StepGraphImpl, WhereDocumentsNeedOtherPlacesAgainAndAgainRecordingEndsAndIsToldSo) {
  std::vector<std::int64_t> lengths = {8, 8};
  for (int i = 0; i < 10; ++i) lengths.insert(lengths.end(), {8, 2});
  const OfLengths run(lengths);
  EXPECT_TRUE(at::equal(run.eager, run.replayed));
  EXPECT_EQ(run.replays, 8 * (2 * 2 + 2));
  ASSERT_FALSE(run.notices.empty());
  EXPECT_NE(run.notices.back().find("not captured from here on: the documents"), std::string::npos)
      << run.notices.back();
}

TEST(StepGraphImpl, OneRankOnAGpuIsRecordedOthersAreToldWhyNot) {
  const at::Device gpu(at::kCUDA, 0);
  EXPECT_EQ(reason_against_graph(true, gpu, 1), std::nullopt);
  EXPECT_EQ(reason_against_graph(false, at::kCPU, 1), std::nullopt);
  EXPECT_EQ(reason_against_graph(false, gpu, 2), std::nullopt);
  EXPECT_NE(reason_against_graph(true, gpu, 2).value().find("2 ranks"), std::string::npos);
  try {
    reason_against_graph(true, at::kCPU, 1);
    FAIL() << "taken";
  } catch (const UserError& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_NE(std::string(error.what()).find("compute.cuda_graph=off"), std::string::npos);
  }
}

}  // namespace
}  // namespace assay::impl::run::step_graph_test
