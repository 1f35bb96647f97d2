// labels: unit property fault
// A run of the step on paper: what it holds, in what order, against counts by hand; and that it refuses what
// no trainer could compute.
#include "spec/step/paper/run.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "spec/flops/by_precision.hpp"
#include "spec/ops/load_balancing/load_balancing.hpp"
#include "spec/ops/router/router.hpp"
#include "spec/plan/plan.hpp"
#include "tests/support/draw_model.hpp"
#include "tests/support/label_of.hpp"

namespace assay::spec::paper_test {
namespace {

using memory::Ledger;
using memory::Setting;
using paper::PaperOps;
using time::StepOp;

ModelSpec small() {
  ModelSpec model;
  model.name = "small";
  model.vocab = 5, model.width = 4, model.layers = 1, model.heads = 2, model.kv_heads = 1, model.head_dim = 2;
  model.ffn = 3, model.context = 8;
  return model;
}

paper::OpMemory call_of(const paper::Trace& trace, StepOp op, std::size_t which) {
  for (const paper::OpMemory& each : trace.memory)
    if (each.op == op && which-- == 0) return each;
  throw std::logic_error("no such call");
}

/// Route, losses, and in backward the gradients of logits, input and weight: what is computed again is the
/// route alone, so that losses and loads count once. Of what is sampled there are no losses.
TEST(PaperSpec, LossesOfRoutersAreNotComputedAgain) {
  ModelSpec model = small();
  model.layers = 3, model.family = Family::mixtral;
  model.experts = Experts{.count = 4, .active = 2, .width = 3, .first_dense = 1};
  for (const Recompute recompute : all_recomputes) {
    Setting setting{.model = model, .recompute = recompute, .micro = 2, .sequence_length = 3};
    setting.auxiliary = {.probabilities = true, .logits = true};
    const paper::Trace trace = paper::trace(setting);
    const auto calls = std::count_if(trace.memory.begin(), trace.memory.end(),
                                     [](const paper::OpMemory& each) { return each.op == StepOp::router; });
    EXPECT_EQ(calls, 2 * (recompute == Recompute::block ? 6 : 5)) << to_string(recompute);
    const Flops losses = router::probabilities_flops(6, *model.experts) +
                         load_balancing::forward_flops({.N = 6, .X = 4, .G = 2}) +
                         load_balancing::z_forward_flops(6, 4) + load_balancing::entropy_flops(6, 4);
    const auto found = std::count_if(trace.ops.begin(), trace.ops.end(), [&](const paper::OpRecord& each) {
      return each.count.op == StepOp::router && each.count.flops.vector == losses.vector;
    });
    EXPECT_EQ(found, 2) << to_string(recompute);
  }
}

/// What is held when each call of a decoder block's forward begins, counted by hand: N = 6 tokens in fp32, D
/// = 4, F = 3, H E = 4, (H + 2K) E = 8, statistics of 4 bytes.
TEST(PaperSpec, ABlocksForwardByHand) {
  using enum StepOp;
  const std::int64_t D = 6 * 4, F = 6 * 3, HE = 6 * 4, of_qkv = 6 * 8, rstd = 6, lse = 2 * 2 * 3;
  for (const Recompute recompute : {Recompute::norms_swiglu, Recompute::attention}) {
    const Setting setting{.model = small(), .recompute = recompute, .micro = 2, .sequence_length = 3};
    const paper::Trace trace = paper::trace(setting);
    const auto held = [&](StepOp op, std::size_t which) { return call_of(trace, op, which).before; };
    EXPECT_EQ(held(embedding, 0), Count(0));
    EXPECT_EQ(held(rms_norm, 0), Count(4 * D));
    EXPECT_EQ(held(qkv, 0), Count(4 * (D + rstd + D)));  // normed
    const std::int64_t before_attention = D + rstd + of_qkv;
    EXPECT_EQ(held(rope, 0), Count(4 * before_attention)) << "normed is gone";
    EXPECT_EQ(held(attention, 0), Count(4 * before_attention));
    EXPECT_EQ(held(attention_output, 0), Count(4 * (before_attention + HE + lse)));
    const std::int64_t kept = before_attention + (recompute == Recompute::attention ? 0 : HE + lse);
    EXPECT_EQ(held(rms_norm, 1), Count(4 * (kept + D)));            // x_mid
    EXPECT_EQ(held(gate_up, 0), Count(4 * (kept + D + rstd + D)));  // normed_mid
    EXPECT_EQ(held(swiglu, 0), Count(4 * (kept + D + rstd + 2 * F)));
    EXPECT_EQ(held(down, 0), Count(4 * (kept + D + rstd + 3 * F)));         // gated
    EXPECT_EQ(held(rms_norm, 2), Count(4 * (kept + D + rstd + 2 * F + D)))  // the block's output
        << "gated is gone";
  }
}

/// What a decoder block's backward holds when it is fullest, of the same sizes.
TEST(PaperSpec, ABlocksPeakByHand) {
  const Setting setting{.model = small(), .micro = 2, .sequence_length = 3};
  const paper::Trace trace = paper::trace(setting);
  const auto at = [&](StepOp op, std::size_t which) { return call_of(trace, op, which); };
  const std::int64_t D = 6 * 4, F = 6 * 3, HE = 6 * 4, qkv = 6 * 8;
  const std::int64_t statistics = 6 + 6 + 2 * 2 * 3, kept = D + D + qkv + HE + 2 * F;
  // Before the MLP's backward: the block's activations and dx; rstd_final lives until the end of backward.
  const std::int64_t entry = kept + statistics + D + 6;
  EXPECT_EQ(at(StepOp::down, 1).before, Count(4 * entry));         // input gradient
  EXPECT_EQ(at(StepOp::down, 1).most, Count(4 * (entry + F)));     // d_gated
  EXPECT_EQ(at(StepOp::swiglu, 1).most, Count(4 * (entry + F)));   // in place, in gate_up
  EXPECT_EQ(at(StepOp::gate_up, 1).before, Count(4 * entry));      // gated is gone
  EXPECT_EQ(at(StepOp::gate_up, 1).most, Count(4 * (entry + D)));  // d_normed_mid
  EXPECT_EQ(at(StepOp::gate_up, 2).before, Count(4 * entry));      // x_mid is gone, normed_mid is there
  // gate_up, normed_mid and x_mid are gone; rstd_mid stays with its block.
  const std::int64_t attention = entry - 2 * F - D;
  EXPECT_EQ(at(StepOp::attention_output, 1).before, Count(4 * attention));
  EXPECT_EQ(at(StepOp::attention, 1).before, Count(4 * (attention + HE)));      // dy
  EXPECT_EQ(at(StepOp::attention, 1).most, Count(4 * (attention + HE + qkv)));  // dqkv
  // y, lse, qkv and dy are gone.
  const std::int64_t end = attention - HE - 2 * 2 * 3;
  EXPECT_EQ(at(StepOp::qkv, 1).before, Count(4 * end));
  EXPECT_EQ(at(StepOp::qkv, 1).most, Count(4 * (end + D)));        // d_normed
  EXPECT_EQ(at(StepOp::embedding, 1).before, Count(4 * (D + 6)));  // dx and rstd_final are left
}

/// The same of a block whose MLP is a mixture of X = 4 experts of G = 3, A = 2 of them a token: R = N A = 12
/// rows. It is fullest where the gradients of rows are summed into those of tokens.
TEST(PaperSpec, ASparseBlocksPeakByHand) {
  Setting setting{.model = small(), .micro = 2, .sequence_length = 3};
  setting.model.family = Family::mixtral;
  setting.model.experts = Experts{.count = 4, .active = 2, .width = 3};
  const paper::Trace trace = paper::trace(setting);
  const auto at = [&](StepOp op, std::size_t which) { return call_of(trace, op, which); };
  const std::int64_t D = 6 * 4, HE = 6 * 4, qkv = 6 * 8, logits = 6 * 4, slots = 6 * 2, rows = 12 * 4,
                     gated = 12 * 3;
  // Scores; experts, weights, slots and rows; lse; counts of 2 sequences, ends.
  const std::int64_t routing = logits + 4 * slots + 6 + 2 * 4 + 4;
  const std::int64_t statistics = 6 + 6 + 2 * 2 * 3, kept = D + D + qkv + HE + 2 * gated + routing;
  const std::int64_t entry = kept + statistics + D + 6;
  EXPECT_EQ(at(StepOp::permute, 2).before, Count(4 * entry));
  EXPECT_EQ(at(StepOp::permute, 2).most, Count(4 * (entry + rows)));    // dy of each row
  EXPECT_EQ(at(StepOp::experts, 2).before, Count(4 * (entry + rows)));  // input gradient of down
  const std::int64_t gate = entry + rows + gated + slots;               // d_gated, d_weights
  EXPECT_EQ(at(StepOp::swiglu, 1).before, Count(4 * gate));
  EXPECT_EQ(at(StepOp::swiglu, 1).most, Count(4 * gate));                     // in place
  EXPECT_EQ(at(StepOp::experts, 3).most, Count(4 * gate));                    // weight gradient of down
  const std::int64_t left = entry + rows;                                     // d_rows
  EXPECT_EQ(at(StepOp::experts, 4).most, Count(4 * (left + slots)));          // input gradient of gate_up
  EXPECT_EQ(at(StepOp::router, 2).before, Count(4 * (left + slots)));         // d_weights is there still
  EXPECT_EQ(at(StepOp::router, 2).most, Count(4 * (left + slots + logits)));  // d_logits
  EXPECT_EQ(at(StepOp::router, 3).before, Count(4 * (left + logits)));        // input gradient
  EXPECT_EQ(at(StepOp::router, 3).most, Count(4 * (left + logits + D)));      // d_normed
  const std::int64_t fullest = left + logits + D + D;                         // and the sum
  EXPECT_EQ(at(StepOp::permute, 3).most, Count(4 * fullest));
  for (const paper::OpMemory& each : trace.memory) EXPECT_LE(each.most, Count(4 * fullest));
  // x_mid is gone, the norm's value stands where its gradient was.
  EXPECT_EQ(at(StepOp::router, 4).before, Count(4 * (entry + logits)));
  EXPECT_EQ(at(StepOp::permute, 4).most, Count(4 * (entry + rows)));  // its rows once more
  EXPECT_EQ(at(StepOp::experts, 5).before,
            Count(4 * (entry + rows - D)));  // d_logits and the norm's value went
  // All of the mixture is gone, but for rstd_mid.
  EXPECT_EQ(at(StepOp::attention_output, 1).before, Count(4 * (entry - 2 * gated - routing - D)));
}

/// qk_norm's input lives until its backward is done, its statistics, one for each of 3 heads and 6 tokens, as
/// long as the block.
TEST(PaperSpec, AQkNormsMemoryByHand) {
  Setting setting{.model = small(), .micro = 2, .sequence_length = 3};
  const paper::Trace without = paper::trace(setting);
  setting.model.qk_norm = true;
  const paper::Trace with = paper::trace(setting);
  const Count end = call_of(without, StepOp::qkv, 1).before + 4 * 6 * 3;
  EXPECT_EQ(call_of(with, StepOp::qkv, 1).before, end);
  EXPECT_EQ(call_of(with, StepOp::qk_norm_rope, 1).before, end + 4 * 6 * 8);  // [N, (H + 2K) E]
}

/// Across heads two statistics of each of 6 tokens, and rows of (H + K) E = 6 sums on a GPU.
TEST(PaperSpec, TheMemoryOfAQkNormAcrossHeadsByHand) {
  Setting setting{.model = small(), .micro = 2, .sequence_length = 3};
  const Count without = call_of(paper::trace(setting), StepOp::qkv, 1).before;
  setting.model.qk_norm = setting.model.qk_norm_across_heads = true;
  EXPECT_EQ(call_of(paper::trace(setting), StepOp::qkv, 1).before, without + 4 * 6 * 2);
  setting.machine = memory::Machine::cuda;
  const paper::OpMemory backward = call_of(paper::trace(setting), StepOp::qk_norm_rope, 1);
  EXPECT_EQ(backward.most, backward.before + 4 * memory::token_norm_partial_rows * 6);
}

/// Latent attention counted by hand: N = 6 tokens in fp32, D = 4, H = 2 heads of E = 3 entries, R = 2 of them
/// turned, values of W = 5, Cq = 7, Ckv = 6; q | k | v has 22 entries, keys and values as they come 12.
TEST(PaperSpec, LatentAttentionsMemoryByHand) {
  using enum StepOp;
  Setting setting{.model = small(), .recompute = Recompute::mla_up, .micro = 2, .sequence_length = 3};
  setting.model.kv_heads = 2, setting.model.head_dim = 3, setting.model.family = Family::deepseek_v3;
  setting.model.latent = LatentAttention{.query_rank = 7, .key_value_rank = 6, .rope_dim = 2, .value_dim = 5};
  const paper::Trace trace = paper::trace(setting);
  const auto held = [&](StepOp op, std::size_t which) {
    return call_of(trace, op, which).before.divided_exactly_by(4).to_int64();
  };
  const std::int64_t D = 6 * 4, rstd = 6, query = 6 * 6, key_value = 6 * 12, of_qkv = 6 * 22, y = 6 * 10,
                     lse = 2 * 2 * 3, Cq = 6 * 7, Ckv = 6 * 6, R = 6 * 2;
  // Forward: the block's input and its norm, the projections down, whose second is taken apart.
  EXPECT_EQ(held(latent_projections, 0), D + rstd + D);
  EXPECT_EQ(held(latent_projections, 1), D + rstd + D + Cq);
  EXPECT_EQ(held(latent_split, 0), D + rstd + D + Cq + Ckv + R);
  EXPECT_EQ(held(rms_norm, 1), D + rstd + Cq + Ckv + R) << "normed is gone";
  const std::int64_t latents = D + rstd + Cq + Ckv + R;
  EXPECT_EQ(held(latent_projections, 2), latents + rstd + Cq);  // the queries' norm
  EXPECT_EQ(held(rms_norm, 2), latents + rstd + query);         // which is gone
  EXPECT_EQ(held(latent_projections, 3), latents + 2 * rstd + query + Ckv);
  EXPECT_EQ(held(latent_expand, 0), latents + 2 * rstd + query + key_value);
  EXPECT_EQ(held(attention, 0), latents + 2 * rstd + of_qkv);
  const std::int64_t kept = latents + 2 * rstd + y + lse;
  EXPECT_EQ(held(attention_output, 0), kept) << "q, k and v are gone";
  // Backward of attention: dx, rstd_final, rstd_mid and dy; what was dropped is made again beside them.
  const std::int64_t beside = kept + D + 6 + 6 + y;
  EXPECT_EQ(held(latent_expand, 1), beside + query + key_value);
  EXPECT_EQ(held(attention, 1), beside + of_qkv);
  // y, lse, dy and qkv are gone, dqkv is there.
  const std::int64_t behind = beside - 2 * y - lse;
  EXPECT_EQ(held(latent_expand, 2), behind + of_qkv);
  EXPECT_EQ(held(latent_projections, 6), behind - R + query + key_value + R) << "dqkv and r are gone";
  // The weights' gradients find the values of the norms beside the gradients of their inputs, which take the
  // place of the inputs themselves.
  EXPECT_EQ(held(latent_projections, 7), behind + query + key_value + Ckv);
  EXPECT_EQ(held(latent_split, 1), behind + query) << "the gradient of keys and values is gone";
  EXPECT_EQ(held(latent_projections, 8), behind + query);
  EXPECT_EQ(held(latent_projections, 9), behind + query + Cq);
  EXPECT_EQ(held(latent_projections, 10), behind) << "the gradient of queries is gone";
  EXPECT_EQ(held(latent_projections, 11), behind + D);
  EXPECT_EQ(held(latent_projections, 12), behind + D) << "one of the two gradients of x is left";
  EXPECT_EQ(held(latent_projections, 13), behind + D - Cq) << "the gradient of compressed queries is gone";
}

/// On a GPU the head's 5 rows are multiplied as a tile of 128.
TEST(PaperSpec, AddedRowsOfTheHeadArePadding) {
  const Setting setting{.model = small(),
                        .dtype = Dtype::bf16,
                        .machine = memory::Machine::cuda,
                        .micro = 2,
                        .sequence_length = 3};
  const ExecutedFlops ran = paper::trace(setting).executed;
  for (const auto& [pass, gemms] :
       {std::pair{ExecutedPass::forward, 1}, std::pair{ExecutedPass::backward, 2}}) {
    EXPECT_EQ(ran.at(FlopComponent::head, pass).needed, Count(gemms * 2 * 6 * 4 * 5));
    EXPECT_EQ(ran.at(FlopComponent::head, pass).padding, Count(gemms * 2 * 6 * 4 * 123));
  }
}

/// The gradient of the biases of q, k and v needs dqkv, which is there, and on a GPU rows of partial sums:
/// one for each of 6 tokens, (H + 2K) E = 8 entries in fp32.
TEST(PaperSpec, ABiassMemoryFlopsAndBytesByHand) {
  Setting setting{.model = small(), .dtype = Dtype::bf16, .micro = 2, .sequence_length = 3};
  setting.model.qkv_bias = true;
  for (const bool gpu : {false, true}) {
    setting.machine = gpu ? memory::Machine::cuda : memory::Machine::cpu;
    const paper::Trace trace = paper::trace(setting);
    std::size_t seen = 0;
    for (const paper::OpMemory& each : trace.memory) {
      if (each.op != StepOp::bias) continue;
      EXPECT_EQ(each.most, each.before + (gpu ? 6 * 8 * 4 : 0));
      ++seen;
    }
    EXPECT_EQ(seen, 1u);
    for (const paper::OpRecord& record : trace.ops) {
      if (record.count.op == StepOp::bias) {
        EXPECT_EQ(record.count.flops, (Flops{0, 6 * 8}));
        EXPECT_EQ(record.count.bytes, Count(6 * 8 * 2 + 2 * 8 * 4));  // dqkv; db read and written
      }
      if (record.count.op == StepOp::qkv && record.count.pass == time::StepPass::forward) {
        EXPECT_EQ(record.count.flops, (Flops{2 * 6 * 4 * 8, 6 * 8}));
        EXPECT_EQ(record.count.bytes, Count((6 * 4 + 4 * 8 + 8 + 6 * 8) * 2));
        EXPECT_TRUE(record.gemm && record.gemm->bias);
      }
    }
  }
}

RC_GTEST_PROP(PaperSpec, ExecutedFlopsAreTheClosedFormulas, ()) {
  Setting setting;
  setting.model = tests::draw_trainable_model();
  setting.dtype = *rc::gen::element(Dtype::f64, Dtype::f32, Dtype::bf16);
  setting.recompute = *rc::gen::elementOf(all_recomputes);
  setting.attention = *rc::gen::element(AttentionBackend::automatic, AttentionBackend::math);
  setting.micro = *rc::gen::inRange<std::int64_t>(1, 4);
  setting.micro_batches = *rc::gen::inRange<std::int64_t>(1, 4);
  std::vector<std::vector<std::int64_t>> lengths(static_cast<std::size_t>(setting.micro));
  setting.sequence_length = *rc::gen::inRange<std::int64_t>(1, 40);
  ExecutedFlops formula;
  for (auto& of_sequence : lengths) {
    for (std::int64_t left = setting.sequence_length; left > 0; left -= of_sequence.back())
      of_sequence.push_back(*rc::gen::inRange<std::int64_t>(1, left + 1));
    const ExecutedFlops one =
        executed_flops(setting.model, of_sequence, executed_kernel(setting), setting.recompute);
    for (std::int64_t m = 0; m < setting.micro_batches; ++m) formula += one;
  }
  const ExecutedFlops ran = paper::trace(setting, lengths).executed;
  for (std::size_t i = 0; i < flop_components; ++i)
    for (const auto pass : {ExecutedPass::forward, ExecutedPass::backward, ExecutedPass::recompute}) {
      const auto component = static_cast<FlopComponent>(i);
      const ExecutedCount &a = ran.at(component, pass), &b = formula.at(component, pass);
      RC_ASSERT(a.needed == b.needed && a.masked_pairs == b.masked_pairs && a.padding == b.padding &&
                a.skipped_pairs == b.skipped_pairs);
    }
}

/// Pairs (t, s) that see each other, one by one: within a document, not ahead, within the window.
std::int64_t pairs_counted(const std::vector<std::int64_t>& lengths, std::int64_t window) {
  std::int64_t pairs = 0;
  for (const std::int64_t length : lengths)
    for (std::int64_t t = 0; t < length; ++t)
      for (std::int64_t s = 0; s <= t; ++s) pairs += window == 0 || t - s < window;
  return pairs;
}

/// Matmul FLOPs of attention in the list of ops, of that pass.
Count attention_in_ops(const paper::Trace& trace, time::StepPass pass) {
  Count flops;
  for (const paper::OpRecord& record : trace.ops)
    if (record.count.op == time::StepOp::attention && record.count.pass == pass)
      flops += Count(static_cast<std::int64_t>(record.count.calls)) * record.count.flops.matmul;
  return flops;
}

/// A GEMM into or out of pairs takes 2 E FLOPs a pair and head, of values 2 W: 2 of them forward, 4 backward,
/// the scores again.
RC_GTEST_PROP(PaperSpec, AttentionRunsThePairsThatSeeEachOther, ()) {
  Setting setting;
  setting.model = tests::draw_trainable_model();
  setting.micro_batches = *rc::gen::inRange<std::int64_t>(1, 4);
  setting.sequence_length = *rc::gen::inRange<std::int64_t>(1, 40);
  std::vector<std::int64_t> lengths;
  for (std::int64_t left = setting.sequence_length; left > 0; left -= lengths.back())
    lengths.push_back(*rc::gen::inRange<std::int64_t>(1, left + 1));
  const Count pairs = Count(2 * setting.micro_batches * setting.model.layers) * setting.model.heads *
                      pairs_counted(lengths, setting.model.window),
              once = pairs * setting.model.head_dim, values = pairs * setting.model.value_dim();
  const paper::Trace trace = paper::trace(setting, {lengths});
  const ExecutedFlops& ran = trace.executed;
  const auto needed = [&](FlopComponent component, ExecutedPass pass) {
    return ran.at(component, pass).needed;
  };
  using enum FlopComponent;
  RC_ASSERT(needed(attention_scores, ExecutedPass::forward) == once);
  RC_ASSERT(needed(attention_values, ExecutedPass::forward) == values);
  RC_ASSERT(needed(attention_scores, ExecutedPass::backward) == 2 * once);
  RC_ASSERT(needed(attention_values, ExecutedPass::backward) == 2 * values);
  RC_ASSERT(needed(attention_scores, ExecutedPass::recompute) == once);
  RC_ASSERT(attention_in_ops(trace, time::StepPass::forward) == once + values);
  RC_ASSERT(attention_in_ops(trace, time::StepPass::backward) == 2 * (once + values));
}

TEST(PaperSpec, C3RefusesDocumentsOfOtherSequences) {
  const Setting setting{.model = small(), .micro = 2, .sequence_length = 3};
  for (const std::vector<std::vector<std::int64_t>>& lengths :
       {std::vector<std::vector<std::int64_t>>{{3}}, {{1, 2}, {2}}, {{4}, {2}}, {{3}, {3}, {3}}})
    EXPECT_EQ(tests::label_of([&] { paper::trace(setting, lengths); }), "step_c3");
  EXPECT_NO_THROW(paper::trace(setting, {{1, 2}, {3}}));
}

TEST(PaperSpec, C1RefusesAGemmOfWhatWasWrittenOver) {
  const Setting setting{.model = small(), .micro = 2, .sequence_length = 3};
  Ledger ledger;
  const Share share = share_of(setting);
  PaperOps ops(setting, share, ledger);
  const auto weights = ops.acquire(1).decoder;
  const auto gradients = ops.gradients(1).decoder;
  paper::Tensor x = ops.embedding(step::site::embedding, ops.acquire(0).embedding);
  auto norm =
      ops.rms_norm(step::site::norm_attention, x, weights.norm_attention, weights.qkv, step::ReadBy::both);
  paper::Tensor dx = ops.zeros_like(step::site::norm_final, x);
  // A weight gradient that is put off until dx holds another gradient.
  const paper::Operand dy = ops.operand(dx);
  ops.add(step::site::norm_attention, dx, ops.zeros_like(step::site::norm_final, x));
  EXPECT_EQ(tests::label_of([&] {
              ops.linear_weight_gradient(step::site::attention_output, dy, norm.y, gradients.output);
            }),
            "step_c1");
  EXPECT_EQ(tests::label_of([&] {
              ops.linear_weight_gradient(step::site::attention_output, ops.operand(dx), norm.y,
                                         gradients.output);
            }),
            "accepted");
}

TEST(PaperSpec, TheNormsBackwardWritesOverNoGradientThatAGemmStillReads) {
  const Setting setting{.model = small(), .micro = 2, .sequence_length = 3};
  Ledger ledger;
  const Share share = share_of(setting);
  PaperOps ops(setting, share, ledger);
  const auto weights = ops.acquire(1).decoder;
  const auto gradients = ops.gradients(1).decoder;
  paper::Tensor x = ops.embedding(step::site::embedding, ops.acquire(0).embedding);
  auto norm =
      ops.rms_norm(step::site::norm_attention, x, weights.norm_attention, weights.qkv, step::ReadBy::both);
  const auto backward = [&](paper::Tensor dx) {
    return ops
        .rms_norm_backward(step::site::norm_attention, ops.zeros_like(step::site::norm_final, x), x,
                           weights.norm_attention, norm.rstd, std::move(dx), gradients.norm_attention,
                           weights.qkv, {}, step::ForwardValue::unread)
        .dx;
  };
  paper::Tensor dx = ops.zeros_like(step::site::norm_final, x);
  {
    const paper::Operand dy = ops.operand(dx);
    const auto* const before = dx.storage.get();
    dx = backward(std::move(dx));
    EXPECT_NE(dx.storage.get(), before);
    EXPECT_EQ(tests::label_of([&] {
                ops.linear_weight_gradient(step::site::attention_output, dy, norm.y, gradients.output);
              }),
              "accepted");
  }
  const auto* const alone = dx.storage.get();
  dx = backward(std::move(dx));
  EXPECT_EQ(dx.storage.get(), alone) << "no second buffer where nothing else holds the first";
}

TEST(PaperSpec, C2RefusesExtentsThatDoNotFit) {
  const Setting setting{.model = small(), .micro = 2, .sequence_length = 3};
  Ledger ledger;
  const Share share = share_of(setting);
  PaperOps ops(setting, share, ledger);
  const auto weights = ops.acquire(1).decoder;
  const paper::Tensor x = ops.embedding(step::site::embedding, ops.acquire(0).embedding);
  EXPECT_EQ(tests::label_of([&] { ops.linear(step::site::down, ops.operand(x), weights.down); }), "step_c2");
}

// FP8.

ModelSpec sixteens() {
  ModelSpec model = small();
  model.name = "sixteens";
  model.width = 16, model.layers = 2, model.heads = 4, model.kv_heads = 2, model.head_dim = 4, model.ffn = 48;
  return model;
}

/// Latent attention of multiples of 16, each projection of another size.
ModelSpec latent_sixteens(std::int64_t query_rank) {
  ModelSpec model = sixteens();
  model.family = Family::deepseek_v3, model.kv_heads = model.heads, model.head_dim = 24;
  model.latent =
      LatentAttention{.query_rank = query_rank, .key_value_rank = 64, .rope_dim = 16, .value_dim = 12};
  return model;
}

Setting fp8(QuantiseWeights weights = QuantiseWeights::use) {
  return {.model = sixteens(),
          .dtype = Dtype::bf16,
          .states = Dtype::bf16,
          .linear = {.recipe = quantise::Recipe::fp8_tensor, .unquantised = {}, .weights = weights},
          .machine = memory::Machine::cuda,
          .recompute = Recompute::none,
          .micro = 2,
          .sequence_length = 8};
}

/// What one block keeps, recompute none, N = 16 tokens: the values that only weight gradients read are one
/// byte an entry, the others two; each with a scale of 4 bytes.
TEST(PaperFp8Spec, KeptActivationsByHand) {
  const auto bytes = [](const std::vector<memory::Item>& items, const std::string& name) {
    for (const memory::Item& item : items)
      if (item.name == name) return item.bytes;
    return Count(0);
  };
  const auto kept = paper::kept_activations(fp8());
  const std::int64_t N = 16, L = 2;
  for (const std::string codes : {"normed_fp8", "normed_mid_fp8", "attended_fp8"}) {
    EXPECT_EQ(bytes(kept, codes + "_t"), Count(L * N * 16)) << codes;
    EXPECT_EQ(bytes(kept, codes + "_scales"), Count(L * 4)) << codes;  // of both orientations
  }
  EXPECT_EQ(bytes(kept, "gated_fp8_t"), Count(L * N * 48));
  EXPECT_EQ(bytes(kept, "gate_up"), Count(L * N * 96 * 2));
  for (const char* none : {"normed", "normed_mid", "gated", "normed_fp8", "gated_fp8", "weight_fp8"})
    EXPECT_EQ(bytes(kept, none), Count(0)) << none;
}

/// Each activation and gradient is quantised once; each weight before each GEMM that reads it, or not at all
/// in a micro-batch.
TEST(PaperFp8Spec, EachTensorIsQuantisedOnce) {
  const auto quantised = [](const Setting& setting) {
    std::int64_t calls = 0;
    for (const paper::OpMemory& each : paper::trace(setting).memory) calls += each.op == StepOp::quantise;
    return calls;
  };
  const std::int64_t L = 2, values = 1, gradients = 3, weights = 4;
  EXPECT_EQ(quantised(fp8()), L * (values + gradients + 2 * weights));
  EXPECT_EQ(quantised(fp8(QuantiseWeights::step)), L * (values + gradients));
  Setting again = fp8(QuantiseWeights::step);
  again.recompute = Recompute::norms_swiglu;  // two norms are quantised again
  EXPECT_EQ(quantised(again), L * (values + 2 + gradients));
  Setting first_left = fp8();
  first_left.linear.unquantised = {1};
  EXPECT_EQ(quantised(first_left), values + gradients + 2 * weights);
}

/// Codes that were gathered are forward's twins; backward turns them once.
TEST(PaperFp8Spec, GatheredCodesAreTurnedForBackwardAlone) {
  Setting shards = fp8();
  shards.layout = layout_of(DataParallel::shard, 2);
  const paper::Trace trace = paper::trace(shards);
  const std::int64_t L = 2, values = 1, gradients = 3, weights = 4;
  std::int64_t calls = 0;
  Count turned, others;
  for (const paper::OpRecord& record : trace.ops) {
    if (record.count.op != StepOp::quantise) continue;
    ++calls;
    (record.count.flops.vector == Count(0) ? turned : others) += record.count.bytes;
  }
  EXPECT_EQ(calls, L * (values + gradients + weights));
  const std::int64_t entries = 32 * 16 + 16 * 16 + 96 * 16 + 16 * 48;
  EXPECT_EQ(turned, Count(L * 2 * entries));  // each code read and written
  EXPECT_GT(others, Count(0));
  // A rank's half of a block, with its gains and what pads it to 2 x 64: read for the amax, and quantised for
  // each of the two gathers of one of two blocks, which stay for backward.
  const Count shard = (entries + 2 * 64) / 2;
  std::vector<time::StepOpCount> own;
  for (const time::StepOpCount& op : paper::step_ops(shards))
    if (op.op == StepOp::quantise && op.pass == time::StepPass::update) own.push_back(op);
  ASSERT_EQ(own.size(), 2U);
  EXPECT_EQ(own[0].calls, L);
  EXPECT_EQ(own[0].bytes, shard * 2);
  EXPECT_EQ(own[1].calls, L);
  EXPECT_EQ(own[1].bytes, shard * 3);
  // Of each linear an amax and a scale on 16 bytes, fp32; no bias, and gains are in fp32 anyway.
  Setting values_gathered = shards;
  values_gathered.linear.recipe = quantise::Recipe::fp8_block;
  EXPECT_EQ(memory::plan(shards).state - memory::plan(values_gathered).state, Count(5 * L * weights * 4));
  shards.dtype = Dtype::f32;  // gains beside the codes, of 2 norms
  Setting none = shards;
  none.linear = {};
  EXPECT_EQ(memory::plan(shards).state - memory::plan(none).state,
            Count(5 * L * weights * 4) + Count(L * 2 * 64 * 4));
}

/// Block GEMMs run in FP8, attention, head and the blocks that are left out do not; without what runs again
/// they are those of the peak that MFU is taken of.
RC_GTEST_PROP(PaperFp8Spec, Fp8FlopsAreThoseOfBlockLinears, ()) {
  Setting setting = fp8();
  if (*rc::gen::arbitrary<bool>()) setting.model = latent_sixteens(*rc::gen::element<std::int64_t>(0, 32));
  if (*rc::gen::arbitrary<bool>())
    setting.model.experts = Experts{.count = 5, .active = 2, .width = 7, .shared_width = 6, .first_dense = 1};
  setting.recompute =
      *rc::gen::elementOf(std::vector<Recompute>(std::begin(all_recomputes), std::end(all_recomputes)));
  setting.linear.recipe = *rc::gen::element(quantise::Recipe::fp8_tensor, quantise::Recipe::mxfp8);
  if (*rc::gen::arbitrary<bool>()) setting.linear.unquantised = {2};
  setting.linear.experts = setting.model.experts && *rc::gen::arbitrary<bool>();
  const std::int64_t blocks = 2 - static_cast<std::int64_t>(setting.linear.unquantised.size());
  const ExecutedFlops ran = paper::trace(setting).executed;
  Count once;
  for (const FlopComponent component :
       {FlopComponent::qkv, FlopComponent::latent_projections, FlopComponent::attention_output,
        FlopComponent::gate_up, FlopComponent::down}) {
    // Where the second block has experts, the first alone has a dense MLP, and is in FP8.
    const bool of_first =
        setting.model.experts && (component == FlopComponent::gate_up || component == FlopComponent::down);
    for (const ExecutedPass pass : {ExecutedPass::forward, ExecutedPass::backward, ExecutedPass::recompute})
      RC_ASSERT(2 * ran.at(component, pass).fp8 ==
                (of_first ? 2 : blocks) * ran.at(component, pass).executed());
    for (const ExecutedPass pass : {ExecutedPass::forward, ExecutedPass::backward})
      once += ran.at(component, pass).fp8;
  }
  const FlopsByPrecision exact =
      exact_flops_by_precision(setting.model, setting.sequence_length, Precision::bf16, setting.linear);
  const auto experts = [&](ExecutedPass pass) { return ran.at(FlopComponent::routed_experts, pass); };
  const bool in_fp8 = setting.linear.experts && setting.linear.of(2, 2) != quantise::Recipe::none;
  RC_ASSERT(experts(ExecutedPass::forward).fp8 ==
            (in_fp8 ? experts(ExecutedPass::forward).executed() : Count(0)));
  RC_ASSERT(2 * experts(ExecutedPass::backward).fp8 ==
            (in_fp8 ? experts(ExecutedPass::backward).executed() : Count(0)));
  once += experts(ExecutedPass::forward).fp8 + experts(ExecutedPass::backward).fp8;
  RC_ASSERT(once == setting.micro * exact.at(Precision::fp8));
  for (const FlopComponent component :
       {FlopComponent::head, FlopComponent::attention_scores, FlopComponent::attention_values,
        FlopComponent::router, FlopComponent::shared_experts})
    RC_ASSERT(ran.at(component, ExecutedPass::forward).fp8 == Count(0));
}

/// With every block left out nothing of the step changes.
TEST(PaperFp8Spec, AllBlocksLeftOutIsNoFp8) {
  Setting none = fp8(QuantiseWeights::step), out = none;
  none.linear = {};
  out.linear.unquantised = {1, 2};
  const memory::Plan a = memory::plan(none), b = memory::plan(out);
  EXPECT_EQ(a.peak, b.peak);
  EXPECT_EQ(a.items, b.items);
  EXPECT_EQ(paper::trace(none).ops.size(), paper::trace(out).ops.size());
}

/// Twins that are kept: two bytes a weight of block linears and a scale for each matrix.
TEST(PaperFp8Spec, KeptTwinsByHand) {
  const memory::Plan use = memory::plan(fp8()), step = memory::plan(fp8(QuantiseWeights::step));
  const std::int64_t weights = 32 * 16 + 16 * 16 + 96 * 16 + 16 * 48, scales = 4 * 4;
  EXPECT_EQ(step.state - use.state, Count(2 * (2 * weights + scales)));
}

/// The same of latent attention: queries [32, 16] and [4 24, 32], or [4 24, 16] at once, keys and values
/// [64 + 16, 16] and [4 (8 + 12), 64], output [16, 4 12].
TEST(PaperFp8Spec, KeptTwinsOfLatentAttentionByHand) {
  for (const std::int64_t query_rank : {32, 0}) {
    Setting use = fp8(), step = fp8(QuantiseWeights::step);
    use.model = step.model = latent_sixteens(query_rank);
    const std::int64_t queries = query_rank > 0 ? 32 * 16 + 96 * 32 : 96 * 16,
                       weights = queries + 80 * 16 + 80 * 64 + 16 * 48 + 96 * 16 + 16 * 48,
                       scales = 4 * (query_rank > 0 ? 7 : 6);
    EXPECT_EQ(memory::plan(step).state - memory::plan(use).state, Count(2 * (2 * weights + scales)));
  }
}

/// Norms and gates quantise what they make. As ops of their own remain attention's output, both orientations
/// of each weight, and the gradients of all results but gate and up's.
TEST(PaperFp8Spec, OfLatentAttentionEachTensorIsQuantisedOnce) {
  for (const std::int64_t query_rank : {32, 0}) {
    Setting setting = fp8();
    setting.model = latent_sixteens(query_rank);
    std::int64_t calls = 0;
    for (const paper::OpMemory& each : paper::trace(setting).memory) calls += each.op == StepOp::quantise;
    const std::int64_t L = 2, projections = query_rank > 0 ? 4 : 3, values = 1, gradients = 2 + projections,
                       weights = 3 + projections;
    EXPECT_EQ(calls, L * (values + gradients + 2 * weights));
  }
}

TEST(PaperFp8Spec, C4AndC5RefuseWhatNoGemmReads) {
  const Setting setting = fp8();
  Ledger ledger;
  const Share share = share_of(setting);
  PaperOps ops(setting, share, ledger);
  const auto weights = ops.acquire(1).decoder;
  const auto gradients = ops.gradients(1).decoder;
  const paper::Tensor x = ops.embedding(step::site::embedding, ops.acquire(0).embedding);
  const auto norm =
      ops.rms_norm(step::site::norm_attention, x, weights.norm_attention, weights.qkv, step::ReadBy::forward);
  const paper::Tensor qkv = ops.linear(step::site::qkv, norm.y, weights.qkv);
  EXPECT_EQ(tests::label_of([&] { ops.linear(step::site::qkv, ops.kept(norm.y), weights.qkv); }), "step_c4");
  const paper::Operand upstream = ops.gradient_operand(step::site::qkv, qkv, weights.qkv);
  EXPECT_EQ(
      tests::label_of([&] { ops.linear_weight_gradient(step::site::qkv, upstream, norm.y, gradients.qkv); }),
      "step_c4");
  EXPECT_EQ(tests::label_of([&] { ops.linear(step::site::qkv, ops.operand(x), weights.qkv); }), "step_c5");
  EXPECT_EQ(tests::label_of([&] {
              ops.linear_weight_gradient(step::site::qkv, ops.operand(qkv), norm.y, gradients.qkv);
            }),
            "step_c4");
}

/// The loss of a tensor rank counted by hand: 4 tokens, 3 of 5 entries of the vocabulary. Its part of the
/// sums 3 N V, brought to the common maximum 3 N, the losses 2 N + 4 N + 4, the gradient N (3 V + 5) + 1.
TEST(PaperSpec, ATensorRanksLossByHand) {
  ModelSpec model = small();
  model.ffn = 4;
  const Setting setting{
      .model = tensor_model(model, 2), .micro = 1, .sequence_length = 4, .tensor_ranks = 2, .whole = model};
  std::size_t found = 0;
  for (const paper::OpRecord& each : paper::trace(setting).ops) {
    if (each.count.op != StepOp::cross_entropy) continue;
    ++found;
    EXPECT_EQ(each.count.flops.vector, Count(36 + 12 + 28 + 57));
  }
  EXPECT_EQ(found, 1u);
}

}  // namespace
}  // namespace assay::spec::paper_test
