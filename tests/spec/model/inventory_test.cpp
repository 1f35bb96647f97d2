// labels: unit property
#include "spec/model/inventory.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>

#include "spec/error.hpp"
#include "tests/support/draw_model.hpp"
#include "tests/support/label_of.hpp"

namespace assay::spec::inventory_test {
namespace {

TEST(Inventory, ListsTinyQwen3InOrder) {
  ModelSpec model = find_model("tiny-qwen3");
  model.layers = 1;
  std::vector<std::string> names;
  for (const Parameter& parameter : inventory(model).parameters) names.push_back(parameter.name);
  const std::string at = "model.layers.0.";
  EXPECT_EQ(names, (std::vector<std::string>{"model.embed_tokens.weight", at + "input_layernorm.weight",
                                             at + "self_attn.q_proj.weight", at + "self_attn.k_proj.weight",
                                             at + "self_attn.v_proj.weight", at + "self_attn.q_norm.weight",
                                             at + "self_attn.k_norm.weight", at + "self_attn.o_proj.weight",
                                             at + "post_attention_layernorm.weight",
                                             at + "mlp.gate_proj.weight", at + "mlp.up_proj.weight",
                                             at + "mlp.down_proj.weight", "model.norm.weight"}));
}

TEST(Inventory, GivesShapesRolesAndBlocks) {
  const Inventory list = inventory(find_model("llama3-8b"));
  const Parameter& key = list.at("model.layers.31.self_attn.k_proj.weight");
  EXPECT_EQ(key.shape, (std::vector<std::int64_t>{1024, 4096}));
  EXPECT_EQ(key.role, Role::key);
  EXPECT_EQ(key.block, 32);
  EXPECT_TRUE(key.matrix());
  EXPECT_FALSE(list.at("model.norm.weight").matrix());
  EXPECT_EQ(list.at("lm_head.weight").block, 33);
  EXPECT_EQ(list.at("lm_head.weight").shape, (std::vector<std::int64_t>{128256, 4096}));
  EXPECT_EQ(list.blocks, 34);
  EXPECT_EQ(list.parameter_count(), Count(8'030'261'248));
}

TEST(Inventory, C1RejectsUnknownNames) {
  const Inventory tied = inventory(find_model("tiny-qwen3"));
  EXPECT_EQ(tests::label_of([&] { tied.at("lm_head.weight"); }), "inventory_c1");
}

TEST(Inventory, C2RejectsAnAlignmentOutOfRange) {
  for (std::int64_t alignment : {0, -64, (1 << 20) + 1})
    EXPECT_EQ(tests::label_of([&] { inventory(find_model("tiny-llama"), alignment); }), "inventory_c2");
}

TEST(Inventory, C3RejectsBlocksThatAreNotThere) {
  const Inventory list = inventory(find_model("tiny-llama"));
  for (std::int64_t block : {-1, 6})
    EXPECT_EQ(tests::label_of([&] { list.block_range(block); }), "inventory_c3");
}

TEST(Inventory, C4RejectsListsThatFillTheMemory) {
  ModelSpec model = find_model("mixtral-8x7b");
  model.layers = 65'536;
  model.experts->count = 65;
  EXPECT_EQ(tests::label_of([&] { inventory(model); }), "inventory_c4");
  EXPECT_EQ(tests::label_of([&] { multi_token_inventory(model); }), "inventory_c4");
}

TEST(Inventory, ListsAGpt2BlockInOrder) {
  ModelSpec model = find_model("gpt2");
  model.layers = 1;
  std::vector<std::string> names;
  const Inventory list = inventory(model);
  for (const Parameter& parameter : list.parameters) names.push_back(parameter.name);
  const std::string at = "transformer.h.0.";
  EXPECT_EQ(names,
            (std::vector<std::string>{"transformer.wte.weight", "transformer.wpe.weight", at + "ln_1.weight",
                                      at + "ln_1.bias", at + "attn.c_attn.weight", at + "attn.c_attn.bias",
                                      at + "attn.c_proj.weight", at + "attn.c_proj.bias", at + "ln_2.weight",
                                      at + "ln_2.bias", at + "mlp.c_fc.weight", at + "mlp.c_fc.bias",
                                      at + "mlp.c_proj.weight", at + "mlp.c_proj.bias",
                                      "transformer.ln_f.weight", "transformer.ln_f.bias"}));
  EXPECT_EQ(list.at(at + "attn.c_attn.weight").shape, (std::vector<std::int64_t>{768, 2304}));
  EXPECT_EQ(list.at("transformer.wpe.weight").role, Role::positions);
}

/// Every expert's gate and up form one matrix [X 2G, D], every down another, the shared expert stands behind.
TEST(Inventory, StacksTheExpertsOfABlock) {
  ModelSpec model = find_model("deepseek-v3");
  model.layers = 1;
  Experts& e = *model.experts;
  e.first_dense = 0, e.count = 3, e.active = 2, e.groups = e.active_groups = 1;
  const Inventory list = inventory(model, 64 * 1024);
  const std::string at = "model.layers.0.mlp.";
  std::vector<std::string> names;
  for (const Parameter& parameter : list.parameters)
    if (parameter.name.starts_with(at)) names.push_back(parameter.name.substr(at.size()));
  EXPECT_EQ(names,
            (std::vector<std::string>{
                "gate.weight", "gate.e_score_correction_bias", "experts.0.gate_proj.weight",
                "experts.0.up_proj.weight", "experts.1.gate_proj.weight", "experts.1.up_proj.weight",
                "experts.2.gate_proj.weight", "experts.2.up_proj.weight", "experts.0.down_proj.weight",
                "experts.1.down_proj.weight", "experts.2.down_proj.weight", "shared_experts.gate_proj.weight",
                "shared_experts.up_proj.weight", "shared_experts.down_proj.weight"}));
  const auto at_offset = [&](const std::string& name) { return list.at(at + name + ".weight").offset; };
  const std::int64_t G = e.width, D = model.width;
  for (std::int64_t x = 0; x < e.count; ++x) {
    const std::string expert = "experts." + std::to_string(x);
    EXPECT_EQ(at_offset(expert + ".gate_proj"), at_offset("experts.0.gate_proj") + x * 2 * G * D);
    EXPECT_EQ(at_offset(expert + ".up_proj"), at_offset("experts.0.gate_proj") + (2 * x + 1) * G * D);
    EXPECT_EQ(at_offset(expert + ".down_proj"), at_offset("experts.0.down_proj") + x * D * G);
  }
}

TEST(Inventory, ListsTheMultiTokenBlockOfDeepSeekApart) {
  const ModelSpec model = find_model("deepseek-v3");
  const Inventory block = multi_token_inventory(model);
  EXPECT_EQ(block.blocks, 1);
  EXPECT_EQ(block.parameter_count(), Count(11'610'067'968));
  EXPECT_EQ(block.at("model.layers.61.eh_proj.weight").shape, (std::vector<std::int64_t>{7168, 14336}));
  EXPECT_EQ(block.at("model.layers.61.mlp.gate.e_score_correction_bias").learned(), false);
  EXPECT_EQ(tests::label_of([&] { block.at("model.layers.61.embed_tokens.weight"); }), "inventory_c1");
  EXPECT_EQ(tests::label_of([&] { inventory(model).at("model.layers.61.eh_proj.weight"); }), "inventory_c1");
  EXPECT_TRUE(multi_token_inventory(find_model("tiny-llama")).parameters.empty());
}

/// Sums over the list by role, against the closed forms of parameter_counts.
RC_GTEST_PROP(Inventory, AddsUpToEachClosedForm, ()) {
  const ModelSpec model = tests::draw_described_model();
  const ParameterCounts counts = parameter_counts(model);
  Count total, routed, tokens, positions, head;
  for (const Parameter& parameter : inventory(model).parameters) {
    const Role role = parameter.role;
    if (!parameter.learned()) continue;
    total += parameter.size;
    if (parameter.name.find(".experts.") != std::string::npos) routed += parameter.size;
    if (role == Role::embedding) tokens += parameter.size;
    if (role == Role::positions) positions += parameter.size;
    if (role == Role::head) head += parameter.size;
  }
  RC_ASSERT((counts.total == total && counts.token_embedding == tokens && counts.head == head));
  RC_ASSERT((counts.position_embedding == positions));
  RC_ASSERT((counts.without_embeddings() + tokens + positions == total));
  if (model.experts)
    RC_ASSERT((counts.active + routed ==
               total + (routed * model.experts->active).divided_exactly_by(model.experts->count)));
  else
    RC_ASSERT((counts.active == total && routed == Count(0)));
  RC_ASSERT((counts.multi_token == multi_token_inventory(model).parameter_count()));
}

RC_GTEST_PROP(Inventory, HoldsEveryParameterOnceWithoutOverlap, ()) {
  const ModelSpec model = tests::draw_described_model();
  const std::int64_t alignment = *rc::gen::inRange<std::int64_t>(1, 130);
  const Inventory list = inventory(model, alignment);
  RC_ASSERT((list.parameter_count() == parameter_count(model)));
  RC_ASSERT(list.parameters.back().block == model.layers + 1);
  std::set<std::string> names;
  std::int64_t end = 0, block = 0;
  for (const Parameter& parameter : list.parameters) {
    RC_ASSERT(names.insert(parameter.name).second);
    std::int64_t product = 1;
    for (std::int64_t extent : parameter.shape) product *= extent;
    RC_ASSERT(parameter.size == product);
    RC_ASSERT(parameter.offset >= end && parameter.offset - end < alignment);
    RC_ASSERT(parameter.block == block || parameter.block == block + 1);
    end = parameter.offset + parameter.size;
    block = parameter.block;
  }
  RC_ASSERT(list.flat_size >= end && list.flat_size - end < alignment && list.flat_size % alignment == 0);
}

RC_GTEST_PROP(Inventory, FusesQueryKeyValueAndGateUpAndAlignsTheRest, ()) {
  const std::int64_t alignment = *rc::gen::inRange<std::int64_t>(1, 130);
  ModelSpec model = tests::draw_model();
  if (*rc::gen::arbitrary<bool>()) model.experts = tests::draw_experts(model.layers);
  const Inventory list = inventory(model, alignment);
  // Of a block's experts the first gate and the first down alone stand on an aligned offset.
  const auto behind_another = [](const Parameter& parameter, const Parameter& before) {
    return parameter.role == Role::expert_up || parameter.role == Role::shared_up ||
           (parameter.role == Role::expert_gate && before.role == Role::expert_up) ||
           (parameter.role == Role::expert_down && before.role == Role::expert_down);
  };
  for (std::size_t i = 0; i < list.parameters.size(); ++i) {
    const Parameter& parameter = list.parameters[i];
    if (i > 0 && behind_another(parameter, list.parameters[i - 1])) {
      RC_ASSERT(parameter.offset == list.parameters[i - 1].offset + list.parameters[i - 1].size);
      continue;
    }
    if (parameter.role == Role::key || parameter.role == Role::value || parameter.role == Role::up) {
      const Parameter& before = list.parameters[i - 1];
      RC_ASSERT(parameter.offset == before.offset + before.size);
      RC_ASSERT(before.role == (parameter.role == Role::key     ? Role::query
                                : parameter.role == Role::value ? Role::key
                                                                : Role::gate));
    } else if (parameter.role == Role::bias && list.parameters[i - 1].role == Role::bias) {
      RC_ASSERT(parameter.offset == list.parameters[i - 1].offset + list.parameters[i - 1].size);
    } else {
      RC_ASSERT(parameter.offset % alignment == 0);
    }
  }
}

RC_GTEST_PROP(Inventory, CutsTheFlatBufferIntoBlocks, ()) {
  const Inventory list = inventory(tests::draw_described_model(), *rc::gen::inRange<std::int64_t>(1, 130));
  std::int64_t end = 0;
  for (std::int64_t block = 0; block < list.blocks; ++block) {
    const auto range = list.block_range(block);
    RC_ASSERT(range.begin == end && range.begin < range.end);
    end = range.end;
    for (const Parameter& parameter : list.parameters) {
      const bool inside = parameter.offset >= range.begin && parameter.offset + parameter.size <= range.end;
      RC_ASSERT(inside == (parameter.block == block));
    }
  }
  RC_ASSERT(end == list.flat_size);
}

/// What is one field of the step stays one range: query, key and value biases; other vectors stand alone.
TEST(InventorySpec, ASelectionKeepsTogetherWhatIsFused) {
  ModelSpec model = find_model("tiny-llama");
  model.heads = 3, model.kv_heads = 1, model.head_dim = 10, model.qkv_bias = true;
  const Inventory all = inventory(model);
  const Inventory vectors = selection(all, [](const Parameter& p) { return p.block == 2 && !p.matrix(); });
  const std::vector<std::pair<std::string, std::int64_t>> expected = {
      {"input_layernorm.weight", 0},
      {"self_attn.q_proj.bias", 128},
      {"self_attn.k_proj.bias", 158},
      {"self_attn.v_proj.bias", 168},
      {"post_attention_layernorm.weight", 192}};
  ASSERT_EQ(vectors.parameters.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(vectors.parameters[i].name, "model.layers.1." + expected[i].first);
    EXPECT_EQ(vectors.parameters[i].offset, expected[i].second) << expected[i].first;
    EXPECT_EQ(vectors.parameters[i].block, 2);
  }
  EXPECT_EQ(vectors.flat_size, 320);
}

}  // namespace
}  // namespace assay::spec::inventory_test
