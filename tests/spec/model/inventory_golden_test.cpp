// labels: golden
// Names and shapes of our inventories against the files that Hugging Face transformers writes for the same
// config.json (golden/model_inventories): five small models of every family.
#include <gtest/gtest.h>

#include <map>

#include "spec/model/inventory.hpp"
#include "spec/text/json.hpp"
#include "tests/support/golden.hpp"

namespace assay::spec::inventory_golden_test {
namespace {

using Shapes = std::map<std::string, std::vector<std::int64_t>>;

Shapes shapes_in(const std::string& text) {
  const document::Tree tree = parse_json(text, "tensors");
  const document::Item root = tree.root();
  Shapes shapes;
  for (std::size_t i = 0; i < root.size(); ++i)
    for (std::size_t axis = 0; axis < root[i].size(); ++axis)
      shapes[root.key(i)].push_back(root[i][axis].integer());
  return shapes;
}

class InventoryGolden : public testing::TestWithParam<const char*> {};

TEST_P(InventoryGolden, ListsWhatTransformersWrites) {
  const tests::GoldenFile golden =
      tests::load_golden("model_inventories/" + std::string(GetParam()) + ".json");
  const std::vector<std::int64_t> learned = golden.ids("parameters");
  ASSERT_GE(learned.size(), 4u);
  for (std::size_t i = 0; i < learned.size(); ++i) {
    SCOPED_TRACE(golden.text("config/" + std::to_string(i)));
    const ModelSpec model =
        model_from_hugging_face(golden.text("config/" + std::to_string(i)), "config.json");
    // Mistral's layers are Llama's.
    EXPECT_EQ(to_string(model.family), GetParam() == std::string("mistral") ? "llama" : GetParam());
    EXPECT_EQ(parameter_count(model), Count(learned[i]));
    Shapes ours;
    for (const Parameter& parameter : inventory(model).parameters) ours[parameter.name] = parameter.shape;
    const Shapes theirs = shapes_in(golden.text("tensors/" + std::to_string(i)));
    ASSERT_FALSE(theirs.empty());
    EXPECT_EQ(ours, theirs);
  }
}

INSTANTIATE_TEST_SUITE_P(Families, InventoryGolden,
                         testing::Values("gpt2", "llama", "qwen2", "qwen3", "mixtral", "qwen3_moe",
                                         "deepseek_v3", "mistral", "olmoe"),
                         [](const auto& family) { return std::string(family.param); });

/// The comparison above must be able to fail: one extent of the configuration changed, and it does.
TEST(InventoryGoldenTrial, NoticesAnotherWidth) {
  const tests::GoldenFile golden = tests::load_golden("model_inventories/llama.json");
  ModelSpec model = model_from_hugging_face(golden.text("config/0"), "config.json");
  ++model.ffn;
  Shapes ours;
  for (const Parameter& parameter : inventory(model).parameters) ours[parameter.name] = parameter.shape;
  EXPECT_NE(ours, shapes_in(golden.text("tensors/0")));
  EXPECT_NE(parameter_count(model), Count(golden.ids("parameters").at(0)));
}

}  // namespace
}  // namespace assay::spec::inventory_golden_test
