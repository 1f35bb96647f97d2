// labels: unit
#include "impl/metrics/op_times.hpp"

#include <gtest/gtest.h>

#include <chrono>

#include "impl/metrics/executed_flops.hpp"

namespace assay::impl::metrics::op_times_test {
namespace {

using spec::time::MeasuredPart;
using spec::time::StepOp;
using spec::time::StepPass;

/// Works for at least this long.
void busy(double seconds) {
  const auto start = std::chrono::steady_clock::now();
  while (std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() < seconds) {
  }
}

const MeasuredPart* find(const OpTimes& times, StepOp op, StepPass pass) {
  for (const MeasuredPart& part : times.parts)
    if (part.op == op && part.pass == pass) return &part;
  return nullptr;
}

TEST(OpTimesImpl, EveryMomentIsOfTheInnermostOpOrOfNone) {
  OpClock clock(at::kCPU);
  const auto start = std::chrono::steady_clock::now();
  busy(0.002);
  {
    const OpScope attention(StepOp::attention, StepPass::backward);
    busy(0.003);
    {
      const OpScope rope(StepOp::rope, StepPass::backward);
      busy(0.004);
    }
    busy(0.003);
  }
  const OpTimes times = clock.times();
  const double whole = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  ASSERT_EQ(times.parts.size(), 2u);
  const MeasuredPart *attention = find(times, StepOp::attention, StepPass::backward),
                     *rope = find(times, StepOp::rope, StepPass::backward);
  ASSERT_TRUE(attention && rope);
  EXPECT_GE(times.between, 0.002);
  EXPECT_GE(attention->seconds, 0.006);
  EXPECT_GE(rope->seconds, 0.004);
  // Each at least its own share, so with the whole bounded none holds another's.
  EXPECT_LE(times.seconds(), whole + 1e-4);
  EXPECT_EQ(attention->calls, 1);
  EXPECT_EQ(rope->calls, 1);
}

TEST(OpTimesImpl, GemmsAreNamedByTheFlopScopeAroundThem) {
  OpClock clock(at::kCPU);
  {
    FlopScope scope(spec::FlopComponent::gate_up);
    { const OpScope gemm(StepPass::forward); }
    scope.enter(spec::FlopComponent::down);
    { const OpScope gemm(StepPass::weight_gradient); }
    { const OpScope gemm(StepPass::weight_gradient); }
    const FlopScope again(spec::ExecutedPass::recompute);
    { const OpScope gemm(StepPass::forward); }
  }
  { const OpScope gemm(StepPass::forward); }
  const OpTimes times = clock.times();
  EXPECT_EQ(times.parts.size(), 4u);
  EXPECT_TRUE(find(times, StepOp::gate_up, StepPass::forward));
  EXPECT_TRUE(find(times, StepOp::down, StepPass::recompute));
  EXPECT_TRUE(find(times, StepOp::other_gemm, StepPass::forward));
  ASSERT_TRUE(find(times, StepOp::down, StepPass::weight_gradient));
  EXPECT_EQ(find(times, StepOp::down, StepPass::weight_gradient)->calls, 2);
}

TEST(OpTimesImpl, RestartForgetsAndWithoutAClockNothingHappens) {
  { const OpScope nobody(StepOp::adamw, StepPass::update); }
  OpClock clock(at::kCPU);
  { const OpScope first(StepOp::adamw, StepPass::update); }
  clock.restart();
  { const OpScope second(StepOp::swiglu, StepPass::forward); }
  const OpTimes times = clock.times();
  ASSERT_EQ(times.parts.size(), 1u);
  EXPECT_EQ(times.parts[0].op, StepOp::swiglu);
  EXPECT_THROW(OpClock another(at::kCPU), std::logic_error);
}

}  // namespace
}  // namespace assay::impl::metrics::op_times_test
