// labels: unit property fault
// What whole training steps ran, counted at ATen's dispatch and in our own loops, against the spec's count:
// exactly equal, component by component.
#include "impl/metrics/executed_flops.hpp"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "impl/ops/attention/attention.hpp"
#include "impl/ops/linear/linear.hpp"
#include "spec/step/paper/run.hpp"
#include "tests/impl/step_runner.hpp"
#include "tests/support/tiny_models.hpp"

namespace assay::impl::metrics::executed_flops_test {
namespace {

using spec::AttentionKernel;
using spec::ExecutedCount;
using spec::ExecutedFlops;
using spec::ExecutedPass;
using spec::FlopComponent;

constexpr ExecutedPass all_passes[] = {ExecutedPass::forward, ExecutedPass::backward,
                                       ExecutedPass::recompute};

/// The loops that the trainer chooses for CPU tensors.
AttentionKernel cpu_kernel(Dtype dtype) {
  return {.kind = AttentionKernel::Kind::tiles,
          .tile_rows = attention::cpu::tile_rows,
          .column_block = dtype == Dtype::f64 ? 8 : 16};
}

/// Tokens of each document of one sequence.
std::vector<std::int64_t> document_lengths(const reference::Batch& batch, std::int64_t sequence) {
  if (batch.documents.empty()) return {batch.T};
  std::vector<std::int64_t> lengths = {1};
  for (std::int64_t n = sequence * batch.T + 1; n < (sequence + 1) * batch.T; ++n)
    if (batch.documents[static_cast<std::size_t>(n)] == batch.documents[static_cast<std::size_t>(n - 1)])
      ++lengths.back();
    else
      lengths.push_back(1);
  return lengths;
}

/// One line per component and pass where the counts differ; empty when all are equal.
std::string difference(const MeasuredFlops& measured, const ExecutedFlops& expected) {
  std::string text;
  for (std::size_t i = 0; i < spec::flop_components; ++i)
    for (const ExecutedPass pass : all_passes) {
      const auto component = static_cast<FlopComponent>(i);
      const Count ran = measured.at(component, pass), stated = expected.at(component, pass).executed();
      if (ran != stated)
        text += std::string(to_string(component)) + " " + std::string(to_string(pass)) + ": ran " +
                ran.to_string() + ", spec says " + stated.to_string() + "\n";
    }
  if (measured.elsewhere != Count(0)) text += "of no component: " + measured.elsewhere.to_string() + "\n";
  return text;
}

struct Drawn {
  spec::ModelSpec model;
  Dtype dtype;
  reference::Batch batch;
  std::int64_t micro;
  spec::Recompute recompute = spec::Recompute::norms_swiglu;
};

/// By the closed formula.
ExecutedFlops expected(const Drawn& drawn, const AttentionKernel& kernel) {
  ExecutedFlops sum;
  for (std::int64_t b = 0; b < drawn.batch.B; ++b)
    sum += spec::executed_flops(drawn.model, document_lengths(drawn.batch, b), kernel, drawn.recompute);
  return sum;
}

/// By a run of the step on paper, micro-batch by micro-batch.
ExecutedFlops on_paper(const Drawn& drawn) {
  ExecutedFlops sum;
  for (std::int64_t begin = 0; begin < drawn.batch.B; begin += drawn.micro) {
    const std::int64_t end = std::min(begin + drawn.micro, drawn.batch.B);
    std::vector<std::vector<std::int64_t>> lengths;
    for (std::int64_t b = begin; b < end; ++b) lengths.push_back(document_lengths(drawn.batch, b));
    sum += spec::paper::trace({.model = drawn.model,
                               .dtype = drawn.dtype,
                               .recompute = drawn.recompute,
                               .micro = end - begin,
                               .sequence_length = drawn.batch.T},
                              lengths)
               .executed;
  }
  return sum;
}

/// Sequences of up to 40 tokens: one tile, a tile and a bit, several; documents in half of them.
Drawn draw() {
  const auto seed = *rc::gen::inRange<std::uint64_t>(0, 1u << 30);
  Drawn out{.model = seed % 3 == 0   ? tests::latent_model(seed)
                     : seed % 2 == 1 ? tests::routed_model(seed)
                                     : tests::tiny_model(seed),
            .dtype = Dtype::f64,
            .batch = {},
            .micro = 1};
  out.model.context = 64;
  if (!out.model.latent) out.model.head_dim = 2 * *rc::gen::inRange<std::int64_t>(1, 11);
  out.dtype = *rc::gen::element(Dtype::f64, Dtype::f32, Dtype::bf16);
  const auto B = *rc::gen::inRange<std::int64_t>(1, 4), T = *rc::gen::inRange<std::int64_t>(1, 41);
  if (out.model.window > 0) out.model.window = *rc::gen::inRange<std::int64_t>(1, 41);
  const auto documents = *rc::gen::element(tests::Documents::whole, tests::Documents::packed);
  const auto ignored = *rc::gen::element(tests::Ignored::none, tests::Ignored::some);
  out.batch = tests::tiny_batch(out.model, B, T, documents, ignored, seed);
  out.micro = *rc::gen::inRange<std::int64_t>(1, B + 1);
  out.recompute = *rc::gen::elementOf(spec::all_recomputes);
  return out;
}

run::StepSettings settings() {
  return {
      .adamw = {.beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .weight_decay = 0.1}, .clip = 1, .z_loss = 1e-4};
}

/// Runs one whole optimizer step and `extra` while counting.
template <class Extra>
MeasuredFlops step(const Drawn& drawn, const Extra& extra) {
  const auto communicator = make_self_communicator();
  tests::StepRunner trainer(drawn.model, drawn.dtype, at::kCPU, *communicator, settings(), 1,
                            drawn.recompute);
  const FlopCounter counter;
  trainer.step(tests::micro_batches(drawn.batch, drawn.micro),
               static_cast<double>(drawn.batch.valid_tokens()), 1e-3);
  extra(trainer.buffers());
  return counter.measured();
}
MeasuredFlops step(const Drawn& drawn) {
  return step(drawn, [](ParameterBuffers&) {});
}

/// `property` for `draws` drawn configurations, whatever RC_PARAMS says of their number.
template <class Property>
void check_draws(int draws, const Property& property) {
  rc::detail::TestParams params = rc::detail::configuration().testParams;
  params.maxSuccess = draws;
  const auto result = rc::detail::checkTestable(property, rc::detail::TestMetadata(), params);
  std::ostringstream text;
  rc::detail::printResultMessage(result, text);
  EXPECT_TRUE(result.template is<rc::detail::SuccessResult>()) << text.str();
}

TEST(ExecutedFlopsImpl, StepsOf600DrawnConfigurationsRunExactlyWhatTheSpecSays) {
  check_draws(600, [] {
    const Drawn drawn = draw();
    const MeasuredFlops ran = step(drawn);
    const ExecutedFlops stated = expected(drawn, cpu_kernel(drawn.dtype));
    const std::string differ = difference(ran, stated);
    if (!differ.empty())
      RC_FAIL(tests::describe(drawn.model) + " " + tests::describe(drawn.batch) + "\n" + differ);
    RC_ASSERT(ran.total() == stated.executed());
    RC_ASSERT(difference(ran, on_paper(drawn)) == "");
    // Without the named excess, what ran is the numerator of MFU.
    const spec::FlopBreakdown exact = spec::exact_flops(drawn.model, drawn.batch.T);
    for (std::size_t i = 0; i < spec::flop_components; ++i)
      for (const ExecutedPass pass : {ExecutedPass::forward, ExecutedPass::backward}) {
        const auto component = static_cast<FlopComponent>(i);
        const ExecutedCount& item = stated.at(component, pass);
        RC_ASSERT(ran.at(component, pass) - item.masked_pairs - item.padding + item.skipped_pairs ==
                  drawn.batch.B * exact.at(component, static_cast<spec::Pass>(pass)));
      }
  });
}

/// Attention alone by plain ATen GEMMs, which a GPU falls back to.
TEST(ExecutedFlopsImpl, PlainGemmsRunTheWholeSquare) {
  check_draws(100, [] {
    Drawn drawn = draw();
    drawn.recompute = spec::Recompute::none;  // attention alone
    const spec::ModelSpec& m = drawn.model;
    const attention::Form form = m.latent ? attention::Form{.value_dim = m.value_dim()} : attention::Form{};
    auto qkv = at::randn(
        {drawn.batch.B, drawn.batch.T, (m.heads + m.kv_heads) * m.head_dim + m.kv_heads * m.value_dim()},
        at::kDouble);
    if (!m.latent) qkv = qkv.unflatten(2, {-1, m.head_dim});
    const attention::Mask mask(tests::token_batch(drawn.batch, at::kCPU).documents, m.window);
    const FlopCounter counter;
    const auto saved = attention::aten::forward({qkv, m.heads, m.kv_heads, form}, mask);
    {
      const FlopScope scope(ExecutedPass::backward);
      attention::aten::backward(saved.y, {qkv, m.heads, m.kv_heads, form}, saved, mask).joined;
    }
    const ExecutedFlops all = expected(drawn, {.kind = AttentionKernel::Kind::square});
    for (const FlopComponent component : {FlopComponent::attention_scores, FlopComponent::attention_values})
      for (const ExecutedPass pass : all_passes)
        RC_ASSERT(m.layers * counter.measured().at(component, pass) == all.at(component, pass).executed());
    RC_ASSERT(counter.measured().elsewhere == Count(0));
  });
}

/// ATen's fused attention is seen from outside: causal pairs, scores once more in backward.
TEST(ExecutedFlopsImpl, FusedAttentionCountsCausalPairsOnce) {
  const std::int64_t B = 2, H = 3, T = 7, E = 8;
  const at::Tensor q = at::randn({B, H, T, E}), k = at::randn({B, H, T, E}), v = at::randn({B, H, T, E});
  const FlopCounter counter;
  const auto [y, lse] = at::_scaled_dot_product_flash_attention_for_cpu(q, k, v, 0.0, /*is_causal=*/true);
  at::_scaled_dot_product_flash_attention_for_cpu_backward(y, q, k, v, y, lse, 0.0, true);
  const Count gemm = 2 * Count(B) * H * (T * (T + 1) / 2) * E;
  const MeasuredFlops& ran = counter.measured();
  EXPECT_EQ(ran.at(FlopComponent::attention_scores, ExecutedPass::forward), gemm);
  EXPECT_EQ(ran.at(FlopComponent::attention_values, ExecutedPass::forward), gemm);
  EXPECT_EQ(ran.at(FlopComponent::attention_scores, ExecutedPass::backward), 2 * gemm);
  EXPECT_EQ(ran.at(FlopComponent::attention_values, ExecutedPass::backward), 2 * gemm);
  EXPECT_EQ(ran.at(FlopComponent::attention_scores, ExecutedPass::recompute), gemm);
  EXPECT_EQ(ran.total(), 7 * gemm);
}

Drawn example() {
  Drawn drawn{.model = tests::corner_models().front(), .dtype = Dtype::f32, .batch = {}, .micro = 1};
  drawn.batch = tests::tiny_batch(drawn.model, 2, 13, tests::Documents::whole, tests::Ignored::none, 4);
  return drawn;
}

TEST(ExecutedFlopsImpl, ASpecWithoutOneGemmIsSeen) {
  const Drawn drawn = example();
  const MeasuredFlops ran = step(drawn);
  const ExecutedFlops whole = expected(drawn, cpu_kernel(drawn.dtype));
  ASSERT_EQ(difference(ran, whole), "");
  for (std::size_t i = 0; i < spec::flop_components; ++i)
    for (std::size_t pass = 0; pass < spec::executed_passes; ++pass) {
      ExecutedFlops less = whole;
      Count& needed = less.counts[i][pass].needed;
      if (needed == Count(0)) continue;
      // One block's GEMM of one factor's gradient, in one micro-batch of one sequence.
      needed = needed - needed.divided_exactly_by(2 * drawn.model.layers * drawn.batch.B);
      EXPECT_NE(difference(ran, less).find(to_string(static_cast<FlopComponent>(i))), std::string::npos);
    }
}

TEST(ExecutedFlopsImpl, AStepThatRunsOneGemmTwiceIsSeen) {
  const Drawn drawn = example();
  const ExecutedFlops stated = expected(drawn, cpu_kernel(drawn.dtype));
  const auto weights = [&](ParameterBuffers& buffers) {
    return views(buffers.weights, buffers.inventory, drawn.model, 1).decoder;
  };
  const at::Tensor x = at::zeros({1, drawn.model.width});
  const MeasuredFlops named = step(drawn, [&](ParameterBuffers& buffers) {
    const FlopScope scope(FlopComponent::qkv);
    linear::forward(x, weights(buffers).qkv);
  });
  EXPECT_EQ(difference(named, stated).rfind("qkv forward: ran ", 0), 0u) << difference(named, stated);
  const MeasuredFlops unnamed =
      step(drawn, [&](ParameterBuffers& buffers) { linear::backward_input(x, weights(buffers).output); });
  EXPECT_EQ(difference(unnamed, stated).rfind("of no component: ", 0), 0u) << difference(unnamed, stated);
}

TEST(ExecutedFlopsImpl, SettingsOfRecomputeDifferByWhatRunsAgain) {
  Drawn drawn = example();
  std::vector<Count> total, again;
  for (const spec::Recompute recompute : spec::recomputes_of(drawn.model)) {
    drawn.recompute = recompute;
    const MeasuredFlops ran = step(drawn);
    EXPECT_EQ(difference(ran, expected(drawn, cpu_kernel(drawn.dtype))), "") << to_string(recompute);
    total.push_back(ran.total());
    again.push_back(Count(0));
    for (std::size_t i = 0; i < spec::flop_components; ++i)
      again.back() += ran.at(static_cast<FlopComponent>(i), ExecutedPass::recompute);
  }
  EXPECT_EQ(total[0], total[1]);
  for (const std::size_t setting : {2, 3}) {
    EXPECT_GT(total[setting], total[setting - 1]);
    EXPECT_EQ(total[setting] - total[0], again[setting] - again[0]);
  }
}

/// GEMMs hide in many ops. Each op that a step dispatches is counted, or known here to hold none.
TEST(ExecutedFlopsImpl, EveryOpThatAStepDispatchesIsCountedOrHoldsNoGemm) {
  const std::set<std::string> without_gemm = {"aten::_foreach_copy",
                                              "aten::_foreach_zero",
                                              "aten::_to_copy",
                                              "aten::add",
                                              "aten::as_strided",
                                              "aten::cat",
                                              "aten::clone",
                                              "aten::copy",
                                              "aten::empty",
                                              "aten::empty_like",
                                              "aten::empty_strided",
                                              "aten::fill",
                                              "aten::item",
                                              "aten::_local_scalar_dense",
                                              "aten::narrow",
                                              "aten::reshape",
                                              "aten::resize",
                                              "aten::select",
                                              "aten::slice",
                                              "aten::sub",
                                              "aten::sum",
                                              "aten::t",
                                              "aten::to",
                                              "aten::transpose",
                                              "aten::unsqueeze",
                                              "aten::view",
                                              "aten::_unsafe_view",
                                              "aten::zero",
                                              "aten::zeros",
                                              "aten::zeros_like",
                                              "aten::scalar_tensor",
                                              "aten::_reshape_alias",
                                              "aten::cpu",
                                              "aten::mul",
                                              "aten::div",
                                              "aten::contiguous",
                                              "aten::numpy_T",
                                              "aten::detach",
                                              "aten::squeeze",
                                              "aten::unbind",
                                              "aten::lift_fresh",
                                              "aten::tensor",
                                              "aten::alias",
                                              "aten::view_as"};
  for (const Dtype dtype : {Dtype::f64, Dtype::f32, Dtype::bf16}) {
    Drawn drawn = example();
    drawn.dtype = dtype;
    const auto communicator = make_self_communicator();
    tests::StepRunner trainer(drawn.model, dtype, at::kCPU, *communicator, settings(), 1);
    const FlopCounter counter;
    trainer.step({drawn.batch}, static_cast<double>(drawn.batch.valid_tokens()), 1e-3);
    EXPECT_TRUE(counter.seen().contains("aten::mm"));
    for (const std::string& op : counter.seen())
      EXPECT_TRUE(counted_ops().contains(op) || without_gemm.contains(op)) << op;
  }
}

TEST(ExecutedFlopsImpl, ACallThatThrowsIsNotCounted) {
  const FlopCounter counter;
  EXPECT_ANY_THROW(at::mm(at::zeros({2, 3}), at::zeros({4, 5})));
  EXPECT_EQ(counter.measured().total(), Count(0));
  at::mm(at::zeros({2, 3}), at::zeros({3, 5}));
  EXPECT_EQ(counter.measured().elsewhere, Count(60));
}

TEST(ExecutedFlopsImpl, WorkOverPairsIsCountedAnewForOtherDocuments) {
  const auto work = [](std::int64_t pairs) {
    const FlopCounter counter;
    report_pairs(FlopComponent::attention_scores, 6, pairs);
    {
      const FlopScope backward(ExecutedPass::backward);
      report_pairs(FlopComponent::attention_scores, 12, pairs);
      report_pairs(FlopComponent::attention_values, 4, pairs);
    }
    report_flops(FlopComponent::head, 100);
    return counter.measured();
  };
  const MeasuredFlops ten = work(10), three = work(3);
  EXPECT_EQ(ten.at(FlopComponent::attention_scores, ExecutedPass::backward), Count(120));
  EXPECT_EQ(ten.total(), Count(320));
  for (std::size_t i = 0; i < spec::flop_components; ++i)
    for (const ExecutedPass pass : all_passes) {
      const auto component = static_cast<FlopComponent>(i);
      EXPECT_EQ(ten.with_pairs(10, 3).at(component, pass), three.at(component, pass));
      EXPECT_EQ(three.with_pairs(3, 10).at(component, pass), ten.at(component, pass));
    }
  report_pairs(FlopComponent::head, 1, 1);  // without a counter nothing is counted
}

TEST(ExecutedFlopsImpl, ACounterInsideAnotherCountsInItsPlace) {
  const FlopCounter counter;
  report_gemm(1, 1, 1);
  {
    const FlopCounter inner;
    report_gemm(2, 3, 4);
    EXPECT_EQ(inner.measured().total(), Count(48));
    EXPECT_EQ(counter.measured().total(), Count(2)) << "the inner one counts instead";
    report(counter.measured());
    EXPECT_EQ(inner.measured().total(), Count(50));
  }
  report_gemm(1, 1, 1);
  EXPECT_EQ(counter.measured().total(), Count(4));
  {
    const FlopCounter inner;
    at::matmul(at::zeros({4, 2, 3}), at::zeros({4, 3, 5}));
    EXPECT_EQ(inner.measured().total(), Count(4 * 60)) << "each op once";
  }
  at::matmul(at::zeros({4, 2, 3}), at::zeros({4, 3, 5}));
  report_gemm(2, 3, 5);
  EXPECT_EQ(counter.measured().total(), Count(4 + 4 * 60 + 60));
}

TEST(ExecutedFlopsImpl, NothingIsCountedOutside) {
  report_gemm(1, 1, 1);
  report_flops(FlopComponent::head, 5);
  const FlopCounter counter;
  EXPECT_EQ(counter.measured().total(), Count(0));
}

}  // namespace
}  // namespace assay::impl::metrics::executed_flops_test
