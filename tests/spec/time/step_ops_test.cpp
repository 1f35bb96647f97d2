// labels: unit property
#include "spec/time/step_ops.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "spec/error.hpp"
#include "spec/flops/exact.hpp"
#include "spec/flops/executed.hpp"

namespace assay::spec::time::step_ops_test {
namespace {

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

std::string label_of(const StepShape& shape) {
  try {
    step_ops(small(), shape);
  } catch (const SpecError& error) {
    return error.label();
  }
  return "none";
}

TEST(StepOpsSpec, C1RefusesStepsWithoutTokens) {
  EXPECT_EQ(label_of({.micro = 0}), "step_ops_c1");
  EXPECT_EQ(label_of({.accumulation = 0}), "step_ops_c1");
  EXPECT_EQ(label_of({.tokens = 0}), "step_ops_c1");
  EXPECT_EQ(label_of({.head_rows = -1}), "step_ops_c1");
  EXPECT_EQ(label_of({}), "none");
}

TEST(StepOpsSpec, ExampleOfThePage) {
  const auto ops = step_ops(small(), {.micro = 1, .accumulation = 1, .tokens = 2});
  const StepOpCount& qkv = find(ops, StepOp::qkv, StepPass::forward);
  EXPECT_EQ(qkv.flops.matmul, Count(192));
  EXPECT_EQ(qkv.bytes, Count(320));
  EXPECT_EQ(find(ops, StepOp::rms_norm, StepPass::backward).bytes, Count(200));
}

TEST(StepOpsSpec, BytesByHandInBf16) {
  // N = 6, D = 4, F = 8; 2 bytes an entry, 4 of gradients.
  const auto ops = step_ops(small(), {.micro = 3, .accumulation = 2, .tokens = 2, .dtype = Dtype::bf16});
  EXPECT_EQ(find(ops, StepOp::swiglu, StepPass::backward).bytes, Count(6 * 6 * 8 * 2));
  EXPECT_EQ(find(ops, StepOp::down, StepPass::forward).bytes, Count((6 * 8 + 8 * 4 + 6 * 4 + 6 * 4) * 2));
  EXPECT_EQ(find(ops, StepOp::down, StepPass::weight_gradient).bytes,
            Count((6 * 8 + 6 * 4) * 2 + 2 * 8 * 4 * 4));
  EXPECT_EQ(find(ops, StepOp::rms_norm, StepPass::forward).calls, 2 * 2 + 2);
  // Master weights and moments in fp32 are read and written, the gradient read, bf16 weights written.
  const std::int64_t entries = parameter_count(small()).to_int64();
  EXPECT_EQ(find(ops, StepOp::adamw, StepPass::update).bytes, Count(entries * (6 * 4 + 4 + 2)));
  // Gains and the embedding, which no product writes.
  const std::int64_t gains = (2 * small().layers + 1) * small().width;
  EXPECT_EQ(find(ops, StepOp::zero_gradients, StepPass::update).bytes,
            Count((gains + small().vocab * small().width) * 4));
  // 6 rows: logits read and written, targets read, lse written.
  EXPECT_EQ(find(ops, StepOp::cross_entropy, StepPass::forward).bytes,
            Count(6 * small().vocab * 2 * 2 + 6 * 8 + 6 * 4));
  const auto kept =
      step_ops(small(), {.micro = 3, .tokens = 2, .dtype = Dtype::bf16, .recompute = Recompute::none});
  EXPECT_EQ(find(kept, StepOp::swiglu, StepPass::backward).bytes, Count(5 * 6 * 8 * 2));
  const auto narrow = step_ops(small(), {.dtype = Dtype::bf16, .states = Dtype::bf16});
  EXPECT_EQ(find(narrow, StepOp::adamw, StepPass::update).bytes, Count(entries * (6 * 2 + 4)));
}

TEST(StepOpsSpec, NamesTellOpsApart) {
  EXPECT_EQ(name_of(StepOp::attention_output, StepPass::weight_gradient), "attention_output weight gradient");
  EXPECT_EQ(to_string(StepOp::adamw), "adamw");
  EXPECT_EQ(to_string(class_of(StepOp::head)), "product");
  EXPECT_EQ(to_string(class_of(StepOp::clip_grad_norm)), "optimizer");
  EXPECT_EQ(to_string(class_of(StepOp::zero_gradients)), "optimizer");
  EXPECT_EQ(to_string(StepOp::zero_gradients), "zero_gradients");
}

TEST(StepOpsSpec, RooflineIsTheLongerOfTwoBounds) {
  const Flops flops{Count(1000), Count(7)};
  EXPECT_EQ(roofline(flops, 50, {}), std::nullopt);
  EXPECT_DOUBLE_EQ(roofline(flops, 50, {.peak = 100}).value(), 10);
  EXPECT_DOUBLE_EQ(roofline(flops, 50, {.bandwidth = 2}).value(), 25);
  EXPECT_DOUBLE_EQ(roofline(flops, 50, {.peak = 100, .bandwidth = 2}).value(), 25);
  EXPECT_DOUBLE_EQ(roofline(flops, 50, {.peak = 100, .bandwidth = 50}).value(), 10);
}

RC_GTEST_PROP(StepOpsSpecProperty, ProductsAddUpToExactFlops, ()) {
  ModelSpec model = small();
  model.kv_heads = *rc::gen::inRange<std::int64_t>(1, 4);
  model.heads = model.kv_heads * *rc::gen::inRange<std::int64_t>(1, 4);
  model.head_dim = 2 * *rc::gen::inRange<std::int64_t>(1, 6);
  model.width = *rc::gen::inRange<std::int64_t>(1, 40);
  model.ffn = *rc::gen::inRange<std::int64_t>(1, 40);
  model.vocab = *rc::gen::inRange<std::int64_t>(2, 40);
  model.layers = *rc::gen::inRange<std::int64_t>(1, 5);
  model.qk_norm = *rc::gen::arbitrary<bool>();
  const StepShape shape{.micro = *rc::gen::inRange<std::int64_t>(1, 5),
                        .accumulation = *rc::gen::inRange<std::int64_t>(1, 4),
                        .tokens = *rc::gen::inRange<std::int64_t>(1, 50),
                        .head_rows = *rc::gen::inRange<std::int64_t>(0, 60),
                        .recompute = *rc::gen::element(Recompute::none, Recompute::norms_swiglu,
                                                       Recompute::attention, Recompute::block)};
  double sum = 0;
  double again = 0;
  for (const StepOpCount& op : step_ops(model, shape))
    (op.pass == StepPass::recompute ? again : sum) += op.calls * op.flops.matmul.to_double();
  const double exact =
      exact_flops(model, shape.tokens).per_step(shape.micro * shape.accumulation).to_double();
  // What runs again is what the executed FLOPs have beyond the scores that every backward has anyway.
  ExecutedFlops more = executed_flops(model, {shape.tokens}, {}, shape.recompute),
                less = executed_flops(model, {shape.tokens}, {}, Recompute::none);
  const double extra =
      static_cast<double>(shape.micro * shape.accumulation) * (more.executed() - less.executed()).to_double();
  RC_ASSERT(std::abs(again - extra) <= gamma(200, unit_roundoff(Dtype::f64)) * exact);
  RC_ASSERT(std::abs(sum - exact) <= gamma(200, unit_roundoff(Dtype::f64)) * exact);
}

}  // namespace
}  // namespace assay::spec::time::step_ops_test
