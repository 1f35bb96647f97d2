// labels: unit property
#include "spec/model/inventory.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>

#include "spec/error.hpp"
#include "tests/support/draw_model.hpp"

namespace assay::spec {
namespace {

template <class Call>
std::string label_of(Call&& call) {
  try {
    call();
  } catch (const SpecError& error) {
    return error.label();
  }
  return "accepted";
}

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
  EXPECT_EQ(label_of([&] { tied.at("lm_head.weight"); }), "inventory_c1");
}

TEST(Inventory, C2RejectsAnAlignmentOutOfRange) {
  for (std::int64_t alignment : {0, -64, (1 << 20) + 1})
    EXPECT_EQ(label_of([&] { inventory(find_model("tiny-llama"), alignment); }), "inventory_c2");
}

TEST(Inventory, C3RejectsBlocksThatAreNotThere) {
  const Inventory list = inventory(find_model("tiny-llama"));
  for (std::int64_t block : {-1, 6}) EXPECT_EQ(label_of([&] { list.block_range(block); }), "inventory_c3");
}

RC_GTEST_PROP(Inventory, HoldsEveryParameterOnceWithoutOverlap, ()) {
  const ModelSpec model = tests::draw_model();
  const std::int64_t alignment = *rc::gen::inRange<std::int64_t>(1, 130);
  const Inventory list = inventory(model, alignment);
  RC_ASSERT((list.parameter_count() == parameter_count(model)));
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
  const Inventory list = inventory(tests::draw_model(), alignment);
  for (std::size_t i = 0; i < list.parameters.size(); ++i) {
    const Parameter& parameter = list.parameters[i];
    if (parameter.role == Role::key || parameter.role == Role::value || parameter.role == Role::up) {
      const Parameter& before = list.parameters[i - 1];
      RC_ASSERT(parameter.offset == before.offset + before.size);
      RC_ASSERT(before.role == (parameter.role == Role::key     ? Role::query
                                : parameter.role == Role::value ? Role::key
                                                                : Role::gate));
    } else {
      RC_ASSERT(parameter.offset % alignment == 0);
    }
  }
}

RC_GTEST_PROP(Inventory, CutsTheFlatBufferIntoBlocks, ()) {
  const Inventory list = inventory(tests::draw_model(), *rc::gen::inRange<std::int64_t>(1, 130));
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

}  // namespace
}  // namespace assay::spec
