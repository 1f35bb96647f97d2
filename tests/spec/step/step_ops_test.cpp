// labels: unit property
#include "spec/step/paper/run.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "spec/error.hpp"
#include "spec/flops/exact.hpp"
#include "spec/flops/executed.hpp"
#include "spec/parallel/placement.hpp"
#include "tests/support/draw_model.hpp"

namespace assay::spec::step::step_ops_test {
namespace {

using time::StepOp;
using time::StepOpCount;
using time::StepPass;

ModelSpec small() {
  ModelSpec model;
  model.name = "small";
  model.vocab = 16, model.width = 4, model.layers = 1, model.heads = 1, model.kv_heads = 1;
  model.head_dim = 4, model.ffn = 8, model.context = 64;
  return model;
}

const StepOpCount& find(const std::vector<StepOpCount>& ops, StepOp op, StepPass pass) {
  for (const StepOpCount& each : ops)
    if (each.op == op && each.pass == pass) return each;
  throw std::logic_error("no " + name_of(op, pass));
}

double calls_of(const std::vector<StepOpCount>& ops, StepOp op, StepPass pass) {
  double calls = 0;
  for (const StepOpCount& each : ops)
    if (each.op == op && each.pass == pass) calls += each.calls;
  return calls;
}

TEST(StepOpsSpec, ExampleOfThePage) {
  const auto ops = paper::step_ops({.model = small(), .micro = 1, .sequence_length = 2});
  const StepOpCount& qkv = find(ops, StepOp::qkv, StepPass::forward);
  EXPECT_EQ(qkv.flops.matmul, Count(192));
  EXPECT_EQ(qkv.bytes, Count(320));
  // Of the final norm, whose value nobody reads again, and of a block's.
  EXPECT_EQ(find(ops, StepOp::rms_norm, StepPass::backward).bytes, Count((4 * 2 * 4 + 4) * 4 + (2 + 4) * 4));
  EXPECT_EQ(ops.at(std::size_t(&find(ops, StepOp::swiglu, StepPass::backward) - ops.data()) + 3).bytes,
            Count((5 * 2 * 4 + 4) * 4 + (2 + 4) * 4));
}

/// Two tensor ranks, fp32: the first norm reads the embedding's rows, each of the others adds a residual to a
/// sum over ranks, which no op does apart.
TEST(StepOpsSpec, NormsOfTensorRanksAddTheResiduals) {
  ModelSpec model = small();
  model.heads = model.kv_heads = 2, model.layers = 3;
  // 4 rows, 2 of them a rank's own, D = 4: read or written once they are `pass` bytes.
  const Count pass = 2 * 4 * 4, alone = 2 * pass + (2 + 4) * 4;
  Count norms, all, calls;
  for (const StepOpCount& each : paper::step_ops({.model = tensor_model(model, 2),
                                 .recompute = Recompute::none,
                                 .micro = 2,
                                 .sequence_length = 2,
                                 .tensor_ranks = 2,
                                 .whole = model})) {
    if (each.pass != StepPass::forward) continue;
    const auto times = Count(std::llround(each.calls));
    if (each.op == StepOp::rms_norm) norms += times * each.bytes, calls += times;
    if (each.op == StepOp::attention_output || each.op == StepOp::down) all += times;
  }
  EXPECT_EQ(calls, Count(3 * 2 + 1));
  EXPECT_EQ(all, Count(3 * 2)) << "their GEMMs alone";
  EXPECT_EQ(norms, 7 * alone + 6 * (2 * pass));
}

TEST(StepOpsSpec, BytesByHandInBf16) {
  // N = 6, D = 4, F = 8; 2 bytes an entry, 4 of gradients.
  const auto ops = paper::step_ops(
      {.model = small(), .dtype = Dtype::bf16, .micro = 3, .sequence_length = 2, .micro_batches = 2});
  EXPECT_EQ(find(ops, StepOp::swiglu, StepPass::backward).bytes, Count(6 * 6 * 8 * 2));
  EXPECT_EQ(find(ops, StepOp::down, StepPass::forward).bytes, Count((6 * 8 + 8 * 4 + 6 * 4 + 6 * 4) * 2));
  EXPECT_EQ(calls_of(ops, StepOp::rms_norm, StepPass::forward), 2 * (2 + 1));
  // Master weights and moments in fp32 are read and written, the gradient read, bf16 weights written.
  const std::int64_t entries = parameter_count(small()).to_int64();
  EXPECT_EQ(find(ops, StepOp::adamw, StepPass::update).bytes, Count(entries * (6 * 4 + 4 + 2)));
  // Gains and the embedding, which no GEMM writes.
  const std::int64_t gains = (2 * small().layers + 1) * small().width;
  EXPECT_EQ(find(ops, StepOp::zero_gradients, StepPass::update).bytes,
            Count((gains + small().vocab * small().width) * 4));
  // 6 rows: logits read and written, targets read, lse written.
  EXPECT_EQ(find(ops, StepOp::cross_entropy, StepPass::forward).bytes,
            Count(6 * small().vocab * 2 * 2 + 6 * 8 + 6 * 4));
  const auto kept = paper::step_ops({.model = small(),
                                     .dtype = Dtype::bf16,
                                     .recompute = Recompute::none,
                                     .micro = 3,
                                     .sequence_length = 2});
  EXPECT_EQ(find(kept, StepOp::swiglu, StepPass::backward).bytes, Count(5 * 6 * 8 * 2));
  const auto narrow = paper::step_ops({.model = small(), .dtype = Dtype::bf16, .states = Dtype::bf16});
  EXPECT_EQ(find(narrow, StepOp::adamw, StepPass::update).bytes, Count(entries * (6 * 2 + 4)));
}

/// The GEMM that starts a gradient's sum does not read what lies there; those of later micro-batches do.
TEST(StepOpsSpec, OnlyLaterMicroBatchesReadTheGradientThatTheyAddTo) {
  const auto ops = paper::step_ops(
      {.model = small(), .dtype = Dtype::bf16, .micro = 3, .sequence_length = 2, .micro_batches = 5});
  std::vector<std::pair<Count, double>> rows;
  for (const StepOpCount& each : ops)
    if (each.op == StepOp::down && each.pass == StepPass::weight_gradient)
      rows.emplace_back(each.bytes, each.calls);
  const Count read = (6 * 8 + 6 * 4) * 2, weight = 8 * 4 * 4;
  EXPECT_EQ(rows, (std::vector<std::pair<Count, double>>{{read + weight, 1}, {read + 2 * weight, 4}}));
}

TEST(StepOpsSpec, NamesTellOpsApart) {
  EXPECT_EQ(name_of(StepOp::attention_output, StepPass::weight_gradient), "attention_output weight gradient");
  EXPECT_EQ(to_string(StepOp::adamw), "adamw");
  EXPECT_EQ(to_string(class_of(StepOp::head)), "gemm");
  EXPECT_EQ(to_string(class_of(StepOp::clip_grad_norm)), "optimizer");
  EXPECT_EQ(to_string(class_of(StepOp::zero_gradients)), "optimizer");
  EXPECT_EQ(to_string(StepOp::zero_gradients), "zero_gradients");
}

TEST(StepOpsSpec, RooflineIsTheLongerOfTwoBounds) {
  const Flops flops{Count(1000), Count(7)};
  EXPECT_EQ(time::roofline(flops, 50, {}), std::nullopt);
  EXPECT_DOUBLE_EQ(time::roofline(flops, 50, {.peak = 100}).value(), 10);
  EXPECT_DOUBLE_EQ(time::roofline(flops, 50, {.bandwidth = 2}).value(), 25);
  EXPECT_DOUBLE_EQ(time::roofline(flops, 50, {.peak = 100, .bandwidth = 2}).value(), 25);
  EXPECT_DOUBLE_EQ(time::roofline(flops, 50, {.peak = 100, .bandwidth = 50}).value(), 10);
}

RC_GTEST_PROP(StepOpsSpecProperty, GemmsAddUpToExactFlops, ()) {
  ModelSpec model = small();
  model.kv_heads = *rc::gen::inRange<std::int64_t>(1, 4);
  model.heads = model.kv_heads * *rc::gen::inRange<std::int64_t>(1, 4);
  model.head_dim = 2 * *rc::gen::inRange<std::int64_t>(1, 6);
  model.width = *rc::gen::inRange<std::int64_t>(1, 40);
  model.ffn = *rc::gen::inRange<std::int64_t>(1, 40);
  model.vocab = *rc::gen::inRange<std::int64_t>(2, 40);
  model.layers = *rc::gen::inRange<std::int64_t>(1, 5);
  model.qk_norm = *rc::gen::arbitrary<bool>();
  model.qk_norm_across_heads = model.qk_norm && *rc::gen::arbitrary<bool>();
  if (*rc::gen::inRange(0, 3) == 0) {
    tests::draw_latent(model);
    model.family = Family::deepseek_v3;
  }
  const memory::Setting setting{.model = model,
                                .recompute = *rc::gen::elementOf(all_recomputes),
                                .micro = *rc::gen::inRange<std::int64_t>(1, 5),
                                .sequence_length = *rc::gen::inRange<std::int64_t>(1, 50),
                                .micro_batches = *rc::gen::inRange<std::int64_t>(1, 4)};
  double sum = 0;
  double again = 0;
  for (const StepOpCount& op : paper::step_ops(setting))
    (op.pass == StepPass::recompute ? again : sum) += op.calls * op.flops.matmul.to_double();
  const double exact =
      exact_flops(model, setting.sequence_length).per_step(setting.micro * setting.micro_batches).to_double();
  // What runs again is what the executed FLOPs have beyond the scores that every backward has anyway.
  ExecutedFlops more = executed_flops(model, {setting.sequence_length}, {}, setting.recompute),
                less = executed_flops(model, {setting.sequence_length}, {}, Recompute::none);
  const double extra = static_cast<double>(setting.micro * setting.micro_batches) *
                       (more.executed() - less.executed()).to_double();
  RC_ASSERT(std::abs(again - extra) <= gamma(200, unit_roundoff(Dtype::f64)) * exact);
  RC_ASSERT(std::abs(sum - exact) <= gamma(200, unit_roundoff(Dtype::f64)) * exact);
}

}  // namespace
}  // namespace assay::spec::step::step_ops_test
