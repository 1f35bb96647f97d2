// labels: gpu property
// Steps captured as CUDA graphs against the same steps given call by call: the same bits, the same FLOPs, and
// a capture that fails leaves everything as it was.
#include "impl/step/step_graph.hpp"

#include <ATen/ATen.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <gtest/gtest.h>

#include <iostream>
#include <set>

#include "impl/metrics/executed_flops.hpp"
#include "impl/metrics/op_times.hpp"
#include "impl/ops/determinism.hpp"
#include "tests/impl/step/replay_checks.hpp"
#include "tests/support/gpu.hpp"

namespace assay::impl::run::cuda_step_graph_test {
namespace {

const at::Device gpu(at::kCUDA, 0);

TEST(StepGraphCuda, ReplayedStepsHaveTheBitsOfOthers) {
  ASSAY_NEEDS_GPU();
  for (const parity::ReplayCase& c : parity::replay_cases()) {
    const auto eager = parity::replay_run(c, gpu, nullptr),
               replayed = parity::replay_run(c, gpu, make_cuda_graphs(gpu));
    parity::expect_same(eager, replayed, c.name);
    ASSERT_EQ(replayed.notices.size(), 1u) << c.name;
    EXPECT_NE(replayed.notices[0].find("steps from 3 on are replayed"), std::string::npos)
        << replayed.notices[0];
    std::cout << "heads of " << c.name << ": " << replayed.notices[0] << std::endl;
  }
}

/// Fused kernels, which keep plans, workspaces and a generator: they must be captured too, and train alike.
/// Their backward may add in any order, so losses are compared, and loosely.
TEST(StepGraphCuda, FusedAttentionIsRecorded) {
  ASSAY_NEEDS_GPU();
  spec::ModelSpec model = tests::tiny_model(3);
  model.head_dim = 64, model.context = 128;
  const auto whole = tests::Documents::whole, packed = tests::Documents::packed;
  for (const auto& [backend, documents] :
       {std::pair{spec::AttentionBackend::cudnn, whole}, std::pair{spec::AttentionBackend::flash, whole},
        std::pair{spec::AttentionBackend::flash, packed}}) {
    const auto communicator = make_self_communicator();
    const auto losses = [&, backend = backend, documents = documents](std::unique_ptr<StepCapture> recorder) {
      const bool captures = recorder != nullptr;
      tests::StepRunner trainer(model, Dtype::bf16, gpu, *communicator,
                                {.adamw = {.beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .weight_decay = 0.1},
                                 .clip = 1,
                                 .z_loss = 1e-4},
                                1);
      trainer.model().attend_by(backend);
      if (captures) trainer.executor().capture_with(std::move(recorder));
      std::vector<double> all;
      for (std::uint64_t step = 0; step < 6; ++step) {
        const auto batch = tests::tiny_batch(model, 4, 128, documents, tests::Ignored::some, step);
        all.push_back(
            trainer.step(tests::micro_batches(batch, 2), static_cast<double>(batch.valid_tokens()), 1e-3)
                .cross_entropy);
      }
      const auto notices = trainer.executor().new_notices();
      EXPECT_EQ(notices.size(), captures ? 1u : 0u);
      for (const std::string& notice : notices)
        EXPECT_NE(notice.find("are replayed"), std::string::npos) << notice;
      return all;
    };
    const auto eager = losses(nullptr), replayed = losses(make_cuda_graphs(gpu));
    EXPECT_EQ(eager[0], replayed[0]);
    for (std::size_t step = 1; step < eager.size(); ++step)
      EXPECT_NEAR(replayed[step], eager[step], 2e-3 * eager[step]) << step;
  }
}

/// The first model whose heads fused kernels take, and which sees all of its documents.
std::uint64_t fused_seed() {
  std::uint64_t seed = 0;
  while (tests::tiny_model(seed).head_dim % 8 != 0 || tests::tiny_model(seed).window > 0) ++seed;
  return seed;
}

/// Documents change from step to step, what is captured does not: the kernels find them in the batch.
TEST(StepGraphCuda, DocumentsOnFlashHaveTheBitsAndFlopsOfStepsThatAreNotRecorded) {
  ASSAY_NEEDS_GPU();
  set_deterministic(true);
  const parity::ReplayCase c{.name = "documents on flash",
                             .dtype = Dtype::bf16,
                             .documents = tests::Documents::packed,
                             .model_seed = fused_seed(),
                             .attention = spec::AttentionBackend::flash};
  const auto eager = parity::replay_run(c, gpu, nullptr),
             replayed = parity::replay_run(c, gpu, make_cuda_graphs(gpu));
  parity::expect_same(eager, replayed, c.name);
  ASSERT_EQ(replayed.notices.size(), 1u);
  EXPECT_NE(replayed.notices[0].find("steps from 3 on are replayed"), std::string::npos)
      << replayed.notices[0];
  const auto flops = [&](std::unique_ptr<StepCapture> recorder) {
    parity::ReplayTrainer trainer(c, gpu);
    if (recorder) trainer.executor().capture_with(std::move(recorder));
    std::vector<Count> all;
    for (int step = 0; step < 6; ++step) {
      const metrics::FlopCounter counter;
      trainer.step(step);
      all.push_back(counter.measured().total());
    }
    return all;
  };
  const std::vector<Count> counted = flops(nullptr);
  EXPECT_EQ(counted, flops(make_cuda_graphs(gpu)));
  EXPECT_GT(std::set<Count>(counted.begin(), counted.end()).size(), 1u) << "all documents are alike";
  set_deterministic(false);
}

TEST(StepGraphCuda, ReplayedFlopsAreCountedAtEachReplay) {
  ASSAY_NEEDS_GPU();
  const parity::ReplayCase c = parity::replay_cases().front();
  parity::ReplayTrainer trainer(c, gpu);
  trainer.executor().capture_with(make_cuda_graphs(gpu));
  std::vector<Count> all;
  for (int step = 0; step < 5; ++step) {
    const metrics::FlopCounter counter;
    trainer.step(step);
    all.push_back(counter.measured().total());
  }
  EXPECT_GT(all[0], Count(0));
  for (const Count& count : all) EXPECT_EQ(count, all[0]);
}

TEST(StepGraphCuda, StepsBetweenReplaysMayBeTimedOpByOpAndRecordedAgain) {
  ASSAY_NEEDS_GPU();
  const parity::ReplayCase c = parity::replay_cases()[1];
  const auto run = [&](bool captures) {
    parity::ReplayTrainer trainer(c, gpu);
    if (captures) trainer.executor().capture_with(make_cuda_graphs(gpu));
    for (int step = 0; step < 4; ++step) trainer.step(step);
    {
      metrics::OpClock clock(gpu);
      clock.restart();
      trainer.step(4);
      double timed = 0;
      for (const auto& part : clock.times().parts) timed += part.seconds;
      EXPECT_GT(timed, 0);
    }
    for (int step = 5; step < 8; ++step) trainer.step(step);
    // Captured, profiled op by op, captured anew.
    EXPECT_EQ(trainer.executor().new_notices().size(), captures ? 3u : 0u);
    return trainer.runner().buffers().master.cpu();
  };
  EXPECT_TRUE(at::equal(run(false), run(true)));
}

TEST(StepGraphCuda, ARecordingThatFailsLeavesTheDeviceUsableAndCanBeMadeAnew) {
  ASSAY_NEEDS_GPU();
  const at::Tensor x = at::ones({1000}, at::TensorOptions(gpu));
  const auto recorder = make_cuda_graphs(gpu);
  recorder->on_its_stream([&] {
    // Waiting for the device cannot be captured.
    EXPECT_THROW(recorder->capture(StepPart::forward, [&] { (x + 1).sum().item<float>(); }), c10::Error);
    recorder->forget();
    EXPECT_EQ((x + 1).sum().item<float>(), 2000);
  });
  EXPECT_EQ(at::rand({3}, at::TensorOptions(gpu)).numel(), 3) << "the generator is not left capture";
  const auto before = c10::cuda::CUDACachingAllocator::getDeviceStats(0).allocated_bytes[0].current;
  {
    at::Tensor y = at::zeros_like(x);
    recorder->on_its_stream([&] {
      recorder->capture(StepPart::forward, [&] { y.copy_(x + 1); });
      EXPECT_EQ(y.sum().item<float>(), 0) << "capture runs nothing";
      recorder->replay(StepPart::forward);
      EXPECT_EQ(y.sum().item<float>(), 2000);
    });
    recorder->forget();
  }
  EXPECT_EQ(c10::cuda::CUDACachingAllocator::getDeviceStats(0).allocated_bytes[0].current, before);
  const parity::ReplayCase c = parity::replay_cases().front();
  parity::expect_same(parity::replay_run(c, gpu, nullptr), parity::replay_run(c, gpu, make_cuda_graphs(gpu)),
                      "after a failed capture");
}

}  // namespace
}  // namespace assay::impl::run::cuda_step_graph_test
