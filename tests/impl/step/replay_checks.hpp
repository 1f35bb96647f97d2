#pragma once
// Runs of a few steps in which everything changes from step to step that may: batch, count of valid tokens,
// learning rate, step. With and without a recorder, on any device.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "impl/ops/attention/attention.hpp"
#include "impl/step/step_graph.hpp"
#include "tests/impl/step_runner.hpp"
#include "tests/support/tiny_models.hpp"

namespace assay::impl::parity {

inline constexpr int replay_steps = 7, replay_passes = 3;

struct ReplayCase {
  std::string name;
  Dtype dtype = Dtype::f32, states = Dtype::f32;
  tests::Documents documents = tests::Documents::whole;
  spec::Recompute recompute = spec::Recompute::norms_swiglu;
  std::uint64_t model_seed = 3;
  spec::AttentionBackend attention = spec::AttentionBackend::math;
};

/// Attention by plain products: what adds in any order has no bits to compare.
inline std::vector<ReplayCase> replay_cases() {
  using enum Dtype;
  const auto packed = tests::Documents::packed, whole = tests::Documents::whole;
  return {{"f64", f64, f64, packed},
          {"f32", f32, f32, whole, spec::Recompute::none, 5},
          {"bf16", bf16, f32, whole, spec::Recompute::attention, 4},
          {"bf16 states", bf16, bf16, packed, spec::Recompute::block, 6},
          {"bf16 states, another model", bf16, bf16, whole, spec::Recompute::norms_swiglu, 7}};
}

class ReplayTrainer {
 public:
  ReplayTrainer(const ReplayCase& c, at::Device device)
      : case_(c),
        model_(tests::tiny_model(c.model_seed)),
        communicator_(make_self_communicator()),
        runner_(model_, c.dtype, device, *communicator_, spec::layout_of(spec::DataParallel::replicate, 1),
                {.adamw = {.beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .weight_decay = 0.1, .seed = 9},
                 .clip = 0.5,
                 .z_loss = 1e-3},
                11, c.states, Dtype::f32, c.recompute) {
    runner_.model().attend_by(c.attention);
  }

  run::StepResult step(int step, double more = 0) {
    const auto batch = tests::tiny_batch(model_, 2 * replay_passes, 6, case_.documents,
                                         step % 2 ? tests::Ignored::some : tests::Ignored::none,
                                         static_cast<std::uint64_t>(step));
    return runner_.step(tests::micro_batches(batch, 2), static_cast<double>(batch.valid_tokens()),
                        3e-3 / (1 + step) + more);
  }
  tests::StepRunner& runner() { return runner_; }
  run::Executor& executor() { return runner_.executor(); }

 private:
  const ReplayCase case_;
  const spec::ModelSpec model_;
  const std::unique_ptr<Communicator> communicator_;
  tests::StepRunner runner_;
};

struct ReplayResult {
  std::vector<run::StepResult> steps;
  at::Tensor weights, master, moment1, moment2;
  std::vector<std::string> notices;
};

/// `more`: added to the learning rate of step 4.
inline ReplayResult replay_run(const ReplayCase& c, at::Device device,
                               std::unique_ptr<run::StepCapture> recorder, double more = 0) {
  ReplayTrainer trainer(c, device);
  if (recorder) trainer.executor().capture_with(std::move(recorder));
  ReplayResult out;
  for (int step = 0; step < replay_steps; ++step)
    out.steps.push_back(trainer.step(step, step == 4 ? more : 0));
  const ParameterBuffers& buffers = trainer.runner().buffers();
  out.weights = buffers.weights.cpu(), out.master = buffers.master.cpu();
  out.moment1 = buffers.moment1.cpu(), out.moment2 = buffers.moment2.cpu();
  out.notices = trainer.executor().new_notices();
  return out;
}

inline void expect_same(const ReplayResult& a, const ReplayResult& b, const std::string& where) {
  for (std::size_t i = 0; i < a.steps.size(); ++i) {
    EXPECT_EQ(a.steps[i].cross_entropy, b.steps[i].cross_entropy) << where << " step " << i;
    EXPECT_EQ(a.steps[i].z_loss, b.steps[i].z_loss) << where << " step " << i;
    EXPECT_EQ(a.steps[i].gradient_norm, b.steps[i].gradient_norm) << where << " step " << i;
    EXPECT_EQ(a.steps[i].clip_coefficient, b.steps[i].clip_coefficient) << where << " step " << i;
  }
  EXPECT_TRUE(at::equal(a.weights, b.weights)) << where;
  EXPECT_TRUE(at::equal(a.master, b.master)) << where;
  EXPECT_TRUE(at::equal(a.moment1, b.moment1)) << where;
  EXPECT_TRUE(at::equal(a.moment2, b.moment2)) << where;
}

}  // namespace assay::impl::parity
