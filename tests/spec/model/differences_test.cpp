// labels: unit
#include "spec/model/differences.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/model_changes.hpp"

namespace assay::spec::differences_test {
namespace {

TEST(DifferencesSpec, NamesFieldAndBothValues) {
  const ModelSpec before = find_model("olmoe-1b-7b");
  ModelSpec now = before;
  now.rope_theta = 2 * before.rope_theta;
  now.experts->active = 4;
  now.qk_norm = false;
  now.rope_scaling = RopeScaling{.factor = 8};
  const auto all = differences(now, before);
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all[0], (ModelDifference{"qk_norm", std::string("false"), std::string("true")}));
  EXPECT_EQ(all[1], (ModelDifference{"rope_theta", 20000.0, 10000.0}));
  EXPECT_EQ(all[2].field, "rope_scaling");
  EXPECT_EQ(all[2].before, Value(std::string("none")));
  EXPECT_EQ(std::get<std::string>(all[2].now).rfind("factor = 8.0, low_freq_factor = 1.0", 0), 0u)
      << std::get<std::string>(all[2].now);
  EXPECT_EQ(all[3], (ModelDifference{"experts.active", std::int64_t{4}, std::int64_t{8}}));
}

TEST(DifferencesSpec, EveryFieldMakesOneButTheName) {
  tests::for_each_change(
      tests::changed_model(), [](const std::string& field, const ModelSpec& before, const ModelSpec& after,
                                 const std::string&, unsigned moves) {
        SCOPED_TRACE(field);
        const auto all = differences(after, before);
        const bool named = std::ranges::any_of(all, [&](const auto& each) { return each.field == field; });
        EXPECT_EQ(named, field != "name");
        EXPECT_TRUE(differences(after, after).empty());
        if (field == "multi_token_layers") return;  // not of the inventory that is trained
        EXPECT_EQ(same_parameters(after, before), (moves & tests::tensors) == 0);
      });
}

}  // namespace
}  // namespace assay::spec::differences_test
