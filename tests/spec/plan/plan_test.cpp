// labels: unit property
#include "spec/plan/plan.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "spec/config/load.hpp"
#include "spec/error.hpp"
#include "spec/flops/executed.hpp"
#include "spec/memory/attention.hpp"
#include "spec/memory/document_slots.hpp"
#include "spec/model/inventory.hpp"
#include "spec/parallel/partition.hpp"
#include "spec/parallel/placement.hpp"
#include "tests/support/draw_model.hpp"

namespace assay::spec::memory::plan_test {
namespace {

/// D = 4, one block of H = 2, K = 1, E = 2, F = 3, V = 5.
ModelSpec small() {
  ModelSpec model;
  model.name = "small";
  model.vocab = 5, model.width = 4, model.layers = 1, model.heads = 2, model.kv_heads = 1, model.head_dim = 2;
  model.ffn = 3, model.context = 8;
  return model;
}

Setting draw_setting(const ModelSpec& model = tests::draw_model()) {
  Setting setting;
  setting.model = model;
  setting.dtype = *rc::gen::element(Dtype::f64, Dtype::f32, Dtype::bf16);
  setting.states = setting.dtype == Dtype::bf16 ? *rc::gen::element(Dtype::f32, Dtype::bf16) : Dtype::f32;
  setting.machine = *rc::gen::element(Machine::cpu, Machine::cuda);
  setting.recompute = *rc::gen::elementOf(all_recomputes);
  setting.micro = *rc::gen::inRange<std::int64_t>(1, 9);
  setting.sequence_length = *rc::gen::inRange<std::int64_t>(1, 33);
  setting.micro_batches = *rc::gen::inRange<std::int64_t>(1, 5);
  setting.staged_steps = *rc::gen::inRange<std::int64_t>(1, 4);
  setting.attention = *rc::gen::element(AttentionBackend::automatic, AttentionBackend::math);
  setting.fixed_order = *rc::gen::arbitrary<bool>();
  setting.documents = *rc::gen::arbitrary<bool>();
  setting.sampled = *rc::gen::inRange<std::int64_t>(0, 3);
  return setting;
}

Count bytes_of(const std::vector<Item>& items) {
  Count sum;
  for (const Item& item : items) sum += item.bytes;
  return sum;
}

std::string names(const Setting& setting) {
  std::string text;
  for (const Item& item : paper::kept_activations(setting)) text += item.name + " ";
  return text;
}

TEST(MemoryPlanSpec, ExampleOfThePage) {
  // N = 6 tokens in bf16: x and x_mid 6 x 4, qkv 6 x 8, y 6 x 4, gate_up 6 x 6; rstd twice and lse 2 x 2 x 3.
  Setting setting{
      .model = small(), .dtype = Dtype::bf16, .states = Dtype::f32, .micro = 2, .sequence_length = 3};
  const Count block = (24 + 24 + 48 + 24 + 36) * 2 + (6 + 6 + 12) * 4;
  const Count outside = (24 + 24) * 2 + 6 * 4;  // x_final, d_normed_final, rstd_final
  EXPECT_EQ(bytes_of(paper::kept_activations(setting)), block + outside);
  setting.recompute = Recompute::none;
  EXPECT_EQ(bytes_of(paper::kept_activations(setting)), block + outside + (24 + 24 + 18) * 2);
  setting.recompute = Recompute::attention;
  EXPECT_EQ(bytes_of(paper::kept_activations(setting)), block + outside - (24 * 2 + 12 * 4));
  setting.recompute = Recompute::block;
  EXPECT_EQ(bytes_of(paper::kept_activations(setting)), Count(24 * 2) + outside);
}

TEST(MemoryPlanSpec, EachSettingKeepsWhatThePageSays) {
  Setting setting{.model = small(), .micro = 2, .sequence_length = 3};
  setting.model.qk_norm = true;
  setting.model.family = Family::qwen3;
  const auto with = [&](Recompute recompute) {
    setting.recompute = recompute;
    return names(setting);
  };
  EXPECT_EQ(
      with(Recompute::none),
      "attention_lse attention_y d_normed_final gate_up gated normed normed_mid qk_rstd qkv qkv_raw rstd "
      "rstd_final rstd_mid x x_mid ");
  EXPECT_EQ(with(Recompute::norms_swiglu),
            "attention_lse attention_y d_normed_final gate_up qk_rstd qkv qkv_raw rstd rstd_final rstd_mid x "
            "x_mid ");
  EXPECT_EQ(with(Recompute::attention),
            "d_normed_final gate_up qk_rstd qkv qkv_raw rstd rstd_final rstd_mid x x_mid ");
  EXPECT_EQ(with(Recompute::block), "d_normed_final rstd_final x ");
}

/// Of latent heads, whose values are not as wide as keys, FlashAttention takes none, and cuDNN two kinds.
TEST(MemoryPlanSpec, KernelsOfLatentHeads) {
  Setting setting{.model = find_model("deepseek-v3"), .dtype = Dtype::bf16, .machine = Machine::cuda};
  setting.sequence_length = 64;
  const auto kernel = [&](std::int64_t E, std::int64_t W) {
    setting.model.head_dim = E, setting.model.latent->value_dim = W;
    return to_string(attention_backend(setting));
  };
  EXPECT_EQ(kernel(192, 128), "cudnn");
  EXPECT_EQ(kernel(128, 64), "cudnn");
  EXPECT_EQ(kernel(192, 192), "cudnn");
  EXPECT_EQ(kernel(192, 64), "math");
  EXPECT_EQ(kernel(128, 60), "math");
  setting.documents = true;
  EXPECT_EQ(kernel(192, 128), "math");
  EXPECT_EQ(kernel(192, 192), "flash");
}

/// DeepSeek-V3's attention, dense: what the page says of its bytes, and that each setting keeps less,
/// computes more and takes less than the one before.
TEST(MemoryPlanSpec, LatentAttentionKeepsLessWithEachSetting) {
  Setting setting{.model = find_model("deepseek-v3"), .dtype = Dtype::bf16, .machine = Machine::cuda};
  setting.model.multi_token_layers = 0, setting.model.experts.reset(), setting.model.layers = 4;
  setting.sequence_length = 4096;
  Count peak, kept, flops;
  for (const Recompute recompute : recomputes_of(setting.model)) {
    setting.recompute = recompute;
    const Count mine = plan(setting).peak, of_activations = bytes_of(paper::kept_activations(setting)),
                executed = executed_flops(setting.model, {4096}, {}, recompute).executed();
    if (recompute == Recompute::mla_up) {
      EXPECT_EQ(kept - of_activations, Count(4 * 4096) * 131072);  // latent_attention.md
      EXPECT_EQ(executed - flops, Count(4 * 4096) * 2 * (1536 * 128 * 192 + 512 * 128 * 256));
    }
    if (recompute != Recompute::none) {
      EXPECT_LT(mine, peak) << to_string(recompute);
      EXPECT_LT(of_activations, kept) << to_string(recompute);
      EXPECT_GE(executed, flops) << to_string(recompute);
    }
    peak = mine, kept = of_activations, flops = executed;
  }
}

TEST(MemoryPlanSpec, StateIsWeightsGradientsAndMomentsByDtype) {
  const auto state = [](Dtype dtype, Dtype states) {
    return plan({.model = small(), .dtype = dtype, .states = states, .sequence_length = 2}).state;
  };
  const std::int64_t size = inventory(small()).flat_size, table = 2 * 2 * 1,
                     gains = 3 * 64;  // of one block and the end, each with its gap
  EXPECT_EQ(state(Dtype::f64, Dtype::f32), Count(size * 4 * 8 + table * 8));
  EXPECT_EQ(state(Dtype::f32, Dtype::f32), Count(size * 4 * 4 + table * 4));
  EXPECT_EQ(state(Dtype::bf16, Dtype::f32), Count(size * (2 + 4 + 4 + 4 + 4) + (table + gains) * 4));
  EXPECT_EQ(state(Dtype::bf16, Dtype::bf16), Count(size * (2 + 4 + 2 + 2) + (table + gains) * 4));
}

TEST(MemoryPlanSpec, CudnnWritesOneGradientOfQkvAndFlashThree) {
  Setting setting{
      .model = small(), .dtype = Dtype::bf16, .machine = Machine::cuda, .micro = 16, .sequence_length = 4096};
  setting.model.heads = setting.model.kv_heads = 16, setting.model.head_dim = 64;
  const Plan cudnn = plan(setting);
  setting.attention = AttentionBackend::flash;
  const Plan flash = plan(setting);
  const auto there = [](const Plan& plan, const std::string& name) {
    return std::any_of(plan.items.begin(), plan.items.end(), [&](const Item& i) { return i.name == name; });
  };
  for (const Plan& plan : {cudnn, flash}) EXPECT_TRUE(plan.moment.ends_with(", attention")) << plan.moment;
  EXPECT_TRUE(there(cudnn, "dqkv") && there(cudnn, "attention_sums") && !there(cudnn, "dq"));
  EXPECT_TRUE(!there(flash, "dqkv") && there(flash, "dq") && there(flash, "dk") && there(flash, "dv"));
  // The three are as large as the one; they are joined when q, k, v and y are gone.
  EXPECT_EQ(flash.peak, cudnn.peak);
  // A window is FlashAttention's where it leaves something out: no scores of all pairs.
  setting.attention = AttentionBackend::automatic;
  setting.model.window = 4095;
  EXPECT_EQ(plan(setting).peak, flash.peak);
  setting.model.window = 4096;
  EXPECT_EQ(plan(setting).peak, cudnn.peak);
}

/// Bytes of a tensor that is there at the peak; 0 where there is none.
Count at_peak(const Plan& plan, const std::string& name) {
  for (const Item& item : plan.items)
    if (item.name == name) return item.bytes;
  return 0;
}

/// What cuDNN 9.19 asked for on an H200 (tests/bench/attention_plans.cpp): 3,624 MB of llama-1.36b at
/// 24 x 2,048 tokens, 4,563 MB of llama3-8b at 4 x 4,096, whose query heads share keys.
TEST(MemoryPlanSpec, AFixedOrderTakesTheGradientOfAllScores) {
  Setting setting{.model = find_model("llama-1.36b"),
                  .dtype = Dtype::bf16,
                  .machine = Machine::cuda,
                  .micro = 24,
                  .sequence_length = 2048,
                  .fixed_order = true};
  EXPECT_EQ(at_peak(plan(setting), "d_scores"), Count(3'623'878'656));
  EXPECT_EQ(at_peak(plan(setting), "attention_sums"), Count(0));
  setting.model = find_model("llama3-8b");
  setting.micro = 4, setting.sequence_length = 4096;
  Count workspace;
  for (const char* name : {"d_scores", "dk_of_heads", "dv_of_heads"})
    workspace += at_peak(plan(setting), name);
  EXPECT_EQ(workspace, Count(4'563'402'752));
  setting.fixed_order = false;
  EXPECT_EQ(at_peak(plan(setting), "d_scores"), Count(0));
}

/// Blocks of a head each sum dq on their own where sequences and heads alone do not fill the GPU.
TEST(MemoryPlanSpec, FlashAttentionInAFixedOrderSumsOncePerBlockThatFillsTheGpu) {
  Setting setting{.model = small(),
                  .dtype = Dtype::bf16,
                  .machine = Machine::cuda,
                  .micro = 4,
                  .sequence_length = 4096,
                  .attention = AttentionBackend::flash};
  setting.model.heads = setting.model.kv_heads = 32, setting.model.head_dim = 64;
  const auto sums = [&] { return attention_backward_scratch(setting, 4, 4096).at(0); };
  EXPECT_EQ(sums().name, std::string("attention_sums"));
  EXPECT_EQ(sums().shape, (std::vector<std::int64_t>{1, 4 * 4096, 32, 64}));
  setting.fixed_order = true;
  EXPECT_EQ(sums().shape.at(0), 2);  // 132 over 4 x 32
  setting.sms = 128;
  EXPECT_EQ(sums().shape.at(0), 1);
  setting.documents = true;
  EXPECT_EQ(sums().shape,
            (std::vector<std::int64_t>{1, 4 * 4096 + 128 * document_slots(4, 4096, 0), 32, 64}));
  EXPECT_EQ(attention_backward_scratch(setting, 4, 4096).at(2).name, std::string("lse_by_head"));
}

RC_GTEST_PROP(MemoryPlanSpec, WhatIsThereAtThePeakAddsUpToIt, ()) {
  const Plan plan = memory::plan(draw_setting());
  RC_ASSERT(bytes_of(plan.items) == plan.peak);
  RC_ASSERT(!plan.moment.empty());
  for (const Item& item : plan.items) {
    Count one = item.element_bytes;
    for (const std::int64_t extent : item.shape) one = one * extent;
    RC_ASSERT(item.bytes == item.count * one);
  }
}

RC_GTEST_PROP(MemoryPlanSpec, NothingIsLeftBehindByAStep, ()) {
  const Setting setting = draw_setting(tests::draw_trainable_model());
  Ledger ledger;
  paper::walk(setting, share_of(setting), ledger);
  RC_ASSERT(ledger.now() == Count(0));
}

RC_GTEST_PROP(MemoryPlanSpec, EachSettingNeedsNoMoreAndComputesNoLessThanTheOneBefore, ()) {
  Setting setting = draw_setting();
  Count peak, kept, flops;
  for (const Recompute recompute : recomputes_of(setting.model)) {
    setting.recompute = recompute;
    const Plan whole = plan(setting);
    RC_LOG() << to_string(recompute) << " dtype " << static_cast<int>(setting.dtype) << " machine "
             << static_cast<int>(setting.machine) << " layers " << setting.model.layers << " documents "
             << setting.documents << ": " << whole.peak.to_string() << " at " << whole.moment << "\n";
    const Count mine = whole.peak, of_activations = bytes_of(paper::kept_activations(setting));
    const Count executed = executed_flops(setting.model, {setting.sequence_length}, {}, recompute).executed();
    if (recompute != Recompute::none) {
      // A block that runs again does so beside dx and keeps its attention meanwhile. Where there are other
      // blocks, what they keep is more.
      const bool alone = recompute == Recompute::block && setting.model.layers == 1;
      if (!alone) RC_ASSERT(mine <= peak);
      RC_ASSERT(of_activations < kept);
      RC_ASSERT(executed >= flops);
    }
    peak = mine, kept = of_activations, flops = executed;
  }
}

RC_GTEST_PROP(MemoryPlanSpec, ManyMicroBatchesNeedNoMoreThanTwoButForTheirInputs, ()) {
  Setting setting = draw_setting();
  setting.micro_batches = 2;
  const Count two = plan(setting).peak;
  setting.micro_batches = 1'000'000'000;
  const std::int64_t tokens = setting.micro * setting.sequence_length,
                     offsets = document_slots(setting.micro, setting.sequence_length, 0) + 1,
                     input =
                         setting.staged_steps * (setting.documents ? 24 * tokens + 4 * offsets : 16 * tokens);
  const Count many = plan(setting).peak;
  RC_ASSERT(many <= two + (setting.micro_batches - 2) * Count(input));
  RC_ASSERT(many >= (setting.micro_batches - 2) * Count(input));
}

/// Divisors of the sequences of a step below the micro-batch, largest first.
std::vector<std::int64_t> smaller(const Setting& setting) {
  std::vector<std::int64_t> all;
  for (std::int64_t micro = setting.micro - 1; micro >= 1; --micro)
    if (setting.micro * setting.micro_batches % micro == 0) all.push_back(micro);
  return all;
}

RC_GTEST_PROP(MemoryPlanSpec, WhatIsSaidToFitFitsAndTheNextDoesNot, ()) {
  const Setting setting = draw_setting(tests::draw_trainable_model());
  const Plan asked = plan(setting);
  const Count capacity = (asked.state + asked.peak).to_int64() / 2;
  const auto peak = [&](std::int64_t micro, Recompute recompute) {
    Setting other = setting;
    other.micro_batches = setting.micro * setting.micro_batches / micro;
    other.micro = micro, other.recompute = recompute;
    return plan(other).peak;
  };
  const Fit fit = memory::fit(setting, capacity);
  RC_ASSERT(fit.asked == (asked.peak <= capacity));
  if (fit.asked) return;
  std::int64_t micro = 0;
  for (const std::int64_t each : smaller(setting))
    if (!micro && peak(each, setting.recompute) <= capacity) micro = each;
  RC_ASSERT((fit.smaller_micro ? fit.smaller_micro->micro : 0) == micro);
  std::optional<Recompute> cheapest;
  for (const Recompute recompute : recomputes_of(setting.model))
    if (!cheapest && peak(setting.micro, recompute) <= capacity) cheapest = recompute;
  RC_ASSERT(fit.recompute.has_value() == cheapest.has_value());
  if (cheapest) RC_ASSERT(fit.recompute->recompute == *cheapest);
  for (const auto& way : {fit.smaller_micro, fit.recompute, fit.both}) {
    if (!way) continue;
    RC_ASSERT(way->peak <= capacity);
    RC_ASSERT(way->peak == peak(way->micro, way->recompute));
  }
}

TEST(MemoryPlanSpec, TensorRanksDivideTheTokensOfASmallerMicroBatch) {
  // 6 sequences of 3 tokens: of the micro-batches 1, 2 and 3 two ranks divide that of 2 alone.
  ModelSpec model = small();
  model.ffn = 64;
  Setting setting{.model = tensor_model(model, 2),
                  .dtype = Dtype::f32,
                  .states = Dtype::f32,
                  .micro = 6,
                  .sequence_length = 3,
                  .tensor_ranks = 2,
                  .whole = model};
  const Fit fit = memory::fit(setting, plan(setting).peak - 1);
  ASSERT_TRUE(fit.smaller_micro && fit.both);
  EXPECT_EQ(fit.smaller_micro->micro, 2);
  EXPECT_EQ(fit.both->micro, 2);
  setting.micro = 2;
  EXPECT_FALSE(memory::fit(setting, plan(setting).state).smaller_micro) << "one sequence is not divided";
}

TEST(MemoryPlanSpec, OfTheSettingsThatFitTheOneThatComputesLeastIsNamed) {
  Setting setting{
      .model = small(), .dtype = Dtype::bf16, .states = Dtype::f32, .micro = 2, .sequence_length = 256};
  setting.model.layers = 8;
  const auto peak = [&](Recompute recompute) {
    Setting other = setting;
    other.recompute = recompute;
    return plan(other).peak;
  };
  const Count capacity = peak(all_recomputes[1]);
  setting.recompute = all_recomputes.front();
  ASSERT_TRUE(peak(all_recomputes.front()) > capacity);
  ASSERT_TRUE(peak(all_recomputes.back()) <= capacity);
  const Fit fit = memory::fit(setting, capacity);
  ASSERT_TRUE(fit.recompute);
  EXPECT_EQ(fit.recompute->recompute, all_recomputes[1]);
}

TEST(MemoryPlanSpec, ASettingComesFromTheConfigurationOfARun) {
  const RunConfig config = load("", {"batch.sequences=24", "batch.micro=3", "batch.sequence_length=64",
                                     "compute.dtype=bf16", "optimizer.states=bf16", "compute.attention=math",
                                     "memory.recompute=block", "sample.sentences=5"});
  const Setting setting = setting_of(config, find_model("tiny-llama"), batch_of(24, 3, 2), Machine::cuda);
  EXPECT_EQ(setting.micro, 3);
  EXPECT_EQ(setting.micro_batches, 4);
  EXPECT_EQ(setting.sequence_length, 64);
  EXPECT_EQ(setting.dtype, Dtype::bf16);
  EXPECT_EQ(setting.states, Dtype::bf16);
  EXPECT_EQ(setting.recompute, Recompute::block);
  EXPECT_EQ(setting.sampled, 5);
  EXPECT_EQ(setting.staged_steps, 4);  // two read ahead, one in work, one being filled
  EXPECT_FALSE(setting.documents);
  EXPECT_EQ(setting.attention, AttentionBackend::math);
  EXPECT_FALSE(setting.fixed_order);
  EXPECT_TRUE(setting_of(load("", {"compute.deterministic=on"}), find_model("tiny-llama"),
                         batch_of(32, 32, 1), Machine::cuda)
                  .fixed_order);
  EXPECT_EQ(setting_of(load("", {"compute.attention=flash"}), find_model("tiny-llama"), batch_of(32, 32, 1),
                       Machine::cuda)
                .attention,
            AttentionBackend::flash);
}

/// Bytes of the tensors of that name that llama3-8b in bf16 takes on one of four ranks.
std::int64_t on_four_ranks(std::string_view name, std::vector<std::string> settings) {
  settings.insert(settings.begin(), {"batch.sequences=4", "batch.micro=1", "compute.dtype=bf16"});
  const RunConfig config = load("", settings);
  Setting setting = setting_of(config, find_model("llama3-8b"), batch_of(4, 1, 4), Machine::cuda);
  setting.layout = layout_of(config.data_parallel, 4, config.shard_ranks);
  for (const Item& item : plan(setting).items)
    if (item.name == name) return item.bytes.to_int64();
  return 0;
}

// The head with its norm, in shards of multiples of 64 elements: 128,256 x 4,096 + 4,096 over 4 ranks.
constexpr std::int64_t shard = (128'256 + 1) * 4'096 / 4;

/// Decoder blocks take turns in two buffers: of four, of which every second has experts, the first and the
/// third in one, the others in another.
TEST(MemoryPlanSpec, GatheredBlocksOfTwoSizes) {
  Setting setting;
  setting.model = small(), setting.model.layers = 4;
  setting.model.experts = Experts{.count = 3, .active = 1, .width = 20, .every = 2};
  setting.dtype = Dtype::f32;
  setting.layout = layout_of(DataParallel::shard, 2);
  const Partition blocks = partition(inventory(setting.model), 2);
  const std::int64_t dense = blocks.block_size(1), sparse = blocks.block_size(2),
                     ends = std::max(blocks.block_size(0), blocks.block_size(5));
  ASSERT_LT(dense, sparse);
  ASSERT_EQ(dense, blocks.block_size(3));
  ASSERT_EQ(sparse, blocks.block_size(4));
  int found = 0;
  for (const Item& item : plan(setting).items) {
    if (item.name != "gathered_weights" && item.name != "gathered_gradients") continue;
    ++found;
    EXPECT_EQ(item.bytes, Count(4 * (dense + sparse + ends))) << item.name;
  }
  EXPECT_EQ(found, 2);
}

/// Two copies of the largest block are in flight, and in hybrid two of its shard.
TEST(MemoryPlanSpec, SumsInBf16TakeTwoRoundedCopies) {
  const std::string bf16 = "parallel.reduce=bf16";
  for (const char* data : {"replicate", "zero1", "shard"}) {
    const std::string layout = std::string("parallel.data=") + data;
    EXPECT_EQ(on_four_ranks("rounded_sums", {layout, bf16}), 2 * 4 * shard * 2) << data;
    EXPECT_EQ(on_four_ranks("rounded_shards", {layout, bf16}), 0) << data;
    EXPECT_EQ(on_four_ranks("rounded_sums", {layout}), 0) << data;
  }
  const std::string hybrid = "parallel.data=hybrid", of_two = "parallel.shard_ranks=2";
  EXPECT_EQ(on_four_ranks("rounded_sums", {hybrid, of_two, bf16}), 2 * 4 * shard * 2);
  EXPECT_EQ(on_four_ranks("rounded_shards", {hybrid, of_two, bf16}), 2 * 2 * shard * 2);
  EXPECT_EQ(on_four_ranks("rounded_shards", {hybrid, of_two}), 0);
}

// It keeps one block's activations and a chunk of logits, of as many tokens as it has: no more than a step of
// as many, whatever backward computes again.
RC_GTEST_PROP(MemoryPlanSpec, AValidationOfAMicroBatchIsBelowTheStepsPeak, ()) {
  Setting setting = draw_setting();
  setting.sampled = 0, setting.staged_steps = 1;
  const Plan without = plan(setting);
  setting.validation_batch = setting.micro;
  const Plan with = plan(setting);
  RC_ASSERT(with.state == without.state);
  // Beside what a step takes: its own inputs, and losses of tokens in fp64.
  const Count tokens = Count(setting.micro) * setting.sequence_length;
  RC_ASSERT(with.peak <= without.peak + tokens * 80 + 4096);
}

TEST(MemoryPlanSpec, AValidationIsPlannedBesideCapturedSteps) {
  const RunConfig config = load("", {"eval.share=0.1", "compute.cuda_graph=on", "batch.sequences=1",
                                     "batch.micro=1", "sample.sentences=0"});
  const ModelSpec model = find_model(config.model);
  Setting setting = setting_of(config, model, batch_of(1, 1, 1), Machine::cuda);
  EXPECT_EQ(setting.validation_batch, 32) << "4096 tokens";
  EXPECT_TRUE(setting.captured);
  const Plan captured = plan(setting);
  EXPECT_EQ(captured.moment.substr(0, 12), "validation, ");
  EXPECT_EQ(bytes_of(captured.items), captured.peak);
  setting.captured = false;
  const Plan apart = plan(setting);
  setting.validation_batch = 0;
  const Plan steps = plan(setting);
  // Behind the step its memory is free, unless it is captured: then both are there at once.
  EXPECT_GT(captured.peak, apart.peak);
  EXPECT_GT(captured.peak, steps.peak);
  EXPECT_FALSE(setting_of(config, model, batch_of(1, 1, 1), Machine::cpu).captured);
  EXPECT_EQ(setting_of(load("", {}), model, batch_of(32, 32, 1), Machine::cpu).validation_batch, 0);
}

TEST(MemoryPlanSpec, C1RefusesAStepWithoutTokens) {
  for (const auto member :
       {&Setting::micro, &Setting::sequence_length, &Setting::micro_batches, &Setting::staged_steps}) {
    Setting setting{.model = small()};
    setting.*member = 0;
    try {
      plan(setting);
      ADD_FAILURE() << "not refused";
    } catch (const SpecError& error) {
      EXPECT_EQ(error.label(), "memory_c1");
    }
  }
}

/// What is named as a micro-batch divides the stages of a ramp, and FP8 takes its tokens.
TEST(MemoryPlanSpec, AMicroBatchThatIsNamedGoesWithRampAndFp8) {
  Setting setting;
  setting.model = find_model("llama-1.36b");
  setting.dtype = Dtype::bf16, setting.micro = 24, setting.sequence_length = 1000;
  Setting less = setting;
  less.micro = 7, less.micro_batches = 24;
  const Count capacity = plan(less).peak;
  const auto named = [&] { return fit(setting, capacity).smaller_micro->micro; };
  EXPECT_EQ(named(), 6);
  setting.common_sequences = 4;
  EXPECT_EQ(named(), 4);
  setting.common_sequences = 3;
  EXPECT_EQ(named(), 3);
  setting.linear.recipe = quantise::Recipe::fp8_tensor;  // in units of 16 tokens
  EXPECT_FALSE(micro_holds(setting, 3));
  setting.common_sequences = 0;
  EXPECT_TRUE(micro_holds(setting, 4));
  EXPECT_FALSE(micro_holds(setting, 3));
}

}  // namespace
}  // namespace assay::spec::memory::plan_test
