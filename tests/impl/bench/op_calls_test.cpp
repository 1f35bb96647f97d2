// labels: unit property
// The calls that `assay bench ops` times are the ops of the step, and do what the spec says they do.
#include "impl/bench/op_calls.hpp"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <chrono>
#include <map>
#include <set>

#include "impl/bench/stopwatch.hpp"
#include "impl/metrics/executed_flops.hpp"
#include "impl/metrics/op_times.hpp"
#include "spec/step/paper/run.hpp"
#include "tests/support/tiny_models.hpp"

namespace assay::impl::bench::op_calls_test {
namespace {

using spec::time::StepClass;
using spec::time::StepOp;
using spec::time::StepPass;

struct Drawn {
  spec::memory::Setting setting;
};

Drawn draw() {
  const auto seed = *rc::gen::inRange<std::uint64_t>(0, 1u << 30);
  return {{.model = seed % 3 == 0 ? tests::latent_model(2 * seed) : tests::tiny_model(seed),
           .dtype = *rc::gen::element(Dtype::f64, Dtype::f32, Dtype::bf16),
           .recompute = *rc::gen::elementOf(spec::all_recomputes),
           .micro = *rc::gen::inRange<std::int64_t>(1, 4),
           .sequence_length = *rc::gen::inRange<std::int64_t>(1, 20),
           .micro_batches = *rc::gen::inRange<std::int64_t>(1, 3),
           .chunk_logits = *rc::gen::element<std::int64_t>(40, 200, spec::memory::most_logits)}};
}

RC_GTEST_PROP(OpCallsImplProperty, EveryOpOfAStepIsCalledOnceAndGemmsRunTheFlopsOfTheSpec, ()) {
  const c10::InferenceMode no_autograd;
  const Drawn drawn = draw();
  std::set<std::string> called, expected;
  for (const auto& op : spec::paper::step_ops(drawn.setting))
    if (op.pass != StepPass::recompute)  // forward's
      expected.insert(name_of(op.op, op.pass));
  for_each_op(drawn.setting, at::kCPU, [&](const OpCall& op) {
    RC_ASSERT(called.insert(op.name).second);
    if (op.prepare) op.prepare();
    metrics::OpClock clock(at::kCPU);
    {
      const metrics::FlopCounter counter;
      op.call();
      if (class_of(op.count.op) == StepClass::gemm)
        RC_ASSERT(counter.measured().total() == op.count.flops.matmul);
      if (class_of(op.count.op) != StepClass::gemm && class_of(op.count.op) != StepClass::attention)
        RC_ASSERT(counter.measured().total() == Count(0));
    }
    // The op entered a scope of its own kind, so that a step's clock sees it.
    bool seen = false;
    for (const auto& part : clock.times().parts)
      seen |= class_of(part.op) == class_of(op.count.op) &&
              (part.op == op.count.op || part.op == StepOp::other_gemm) && part.pass == op.count.pass;
    RC_ASSERT(seen);
  });
  RC_ASSERT(called == expected);
}

/// The norms of the blocks and the final one differ in the bytes that their backward moves; each is one call.
TEST(OpCallsImpl, CallsOfEverySizeAreCounted) {
  const c10::InferenceMode no_autograd;
  const spec::memory::Setting setting{.model = spec::find_model("tiny-llama"),
                                      .micro = 1,
                                      .sequence_length = 16,
                                      .micro_batches = 3,
                                      .chunk_logits = 5 * 256};
  std::map<std::string, double> calls;
  double chunks_of_work = 0;
  for_each_op(setting, at::kCPU, [&](const OpCall& op) {
    calls[op.name] = op.count.calls;
    if (op.count.op == StepOp::head && op.count.pass == StepPass::forward) chunks_of_work = op.equal_calls;
  });
  EXPECT_EQ(calls["rms_norm backward"], 3 * (2 * 4 + 1));
  EXPECT_EQ(calls["head forward"], 3 * 4) << "16 rows in chunks of 5";
  EXPECT_LT(chunks_of_work, 3 * 4) << "the last chunk has one row";
  EXPECT_GT(chunks_of_work, 3 * 3);
  EXPECT_EQ(calls["adamw update"], 1);
}

TEST(OpCallsImpl, PreparingGivesBackWhatACallOverwrote) {
  const c10::InferenceMode no_autograd;
  const spec::ModelSpec model = spec::find_model("tiny-llama");
  for_each_op({.model = model, .micro = 1, .sequence_length = 16}, at::kCPU, [&](const OpCall& op) {
    const auto times = time_calls(at::kCPU, {.repeats = 3}, op.prepare, op.call);
    ASSERT_EQ(times.size(), 3u) << op.name;
    EXPECT_GT(times.front(), 0) << op.name;
    EXPECT_LE(times[0], times[1]);
    EXPECT_LE(times[1], times[2]);
    EXPECT_EQ(median(times), times[1]);
  });
}

TEST(StopwatchImpl, PreparationIsNotTimedAndPatienceIsKept) {
  int prepared = 0, called = 0;
  const auto wait = [](double seconds) {
    const auto start = std::chrono::steady_clock::now();
    while (std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() < seconds) {
    }
  };
  const auto times = time_calls(
      at::kCPU, {.repeats = 5},
      [&] {
        ++prepared;
        wait(0.02);
      },
      [&] { ++called; });
  EXPECT_EQ(prepared, 7);  // two calls do not count
  EXPECT_EQ(called, 7);
  EXPECT_LT(times.front(), 0.01);
  EXPECT_GT(time_calls(at::kCPU, {.repeats = 1, .seconds = 0.05}, {}, [&] { wait(1e-4); }).size(), 64u);
}

}  // namespace
}  // namespace assay::impl::bench::op_calls_test
