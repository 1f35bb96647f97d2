// labels: unit property
#include "spec/memory/expert_load.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "spec/plan/plan.hpp"
#include "spec/step/paper/run.hpp"
#include "tests/support/draw_model.hpp"

namespace assay::spec::memory::expert_load_test {
namespace {

/// Four sequences of 512 tokens of OLMoE, 64 experts and 8 of a token, on one of 2 expert ranks.
Setting olmoe() {
  Setting setting;
  setting.model = find_model("olmoe-1b-7b");
  setting.dtype = Dtype::bf16, setting.micro = 4, setting.sequence_length = 512;
  setting.layout = layout_of(DataParallel::zero1, 2), setting.expert_ranks = 2;
  return setting;
}
Count peak_at(Setting setting, double load) {
  setting.load = load;
  return plan(setting).peak;
}

TEST(ExpertLoadSpec, RoutingBringsWhatTokensChooseAndARankHas) {
  Setting setting = olmoe();
  EXPECT_EQ(most_load(setting), 2) << "all choices of both ranks";
  setting.expert_ranks = 64, setting.model.experts->active = 16;
  EXPECT_EQ(most_load(setting), 4) << "one of 16 choices of every token of 64 ranks";
  setting = olmoe();
  setting.capacity = 1.25;
  EXPECT_EQ(most_load(setting), 1.25);
  setting.validation_batch = 1;
  EXPECT_EQ(most_load(setting), 2) << "a validation drops nothing";
  setting.expert_ranks = 1;
  EXPECT_EQ(most_load(setting), 1);
  // 3 tokens on each of 2 ranks, 4 choices, 32 experts here.
  EXPECT_EQ(most_rows(olmoe(), 3, false), 3 * 2 * 8);
}

/// Of N tokens on each of 2 ranks 2 N come at most, however many rows they make; fewer rows are as many
/// tokens.
TEST(ExpertLoadSpec, RowsAreOfTokensThatCame) {
  Setting setting = olmoe();
  const std::int64_t N = setting.micro * setting.sequence_length, A = 8, layers = setting.model.layers;
  const auto entries = [&](const char* name, double load) {
    setting.load = load;
    for (const Item& item : paper::kept_activations(setting))
      if (item.name == name) return item.bytes.to_int64() / 4 / layers;
    return std::int64_t{-1};
  };
  for (const double load : {0.125, 1.0, 1.5, 2.0}) {
    const auto rows = static_cast<std::int64_t>(load * static_cast<double>(N * A));
    EXPECT_EQ(entries("arrived_slots", load), rows);
    EXPECT_EQ(entries("arrived_rows", load), std::min(2 * N, rows) * A);
    EXPECT_EQ(entries("behind_arrived_slots", load), std::min(2 * N, rows) * A - rows);
  }
}

TEST(ExpertLoadSpec, TheLargestLoadThatFitsIsFound) {
  const Setting setting = olmoe();
  const Count least = peak_at(setting, 1), most = peak_at(setting, 2);
  ASSERT_LT(least, most);
  EXPECT_EQ(load_that_fits(setting, most), 2);
  EXPECT_LT(load_that_fits(setting, most - 1), 2);
  EXPECT_EQ(load_that_fits(setting, least), 1);
  EXPECT_EQ(load_that_fits(setting, least - 1), 1) << "what does not fit at all is refused";
  const Count room = least + (most - least).to_int64() / 2;
  const double load = load_that_fits(setting, room);
  EXPECT_GT(load, 1.4);
  EXPECT_LT(load, 1.6);
  EXPECT_LE(peak_at(setting, load), room);
  EXPECT_GT(peak_at(setting, load + 0.01), room);
}

/// More rows in any layer never take less, and layers that are named take what they are said to.
RC_GTEST_PROP(ExpertLoadSpec, MoreLoadTakesNoLess, ()) {
  Setting setting;
  setting.model = tests::draw_model();
  setting.model.experts = tests::draw_experts(setting.model.layers);
  const std::int64_t e = *rc::gen::inRange<std::int64_t>(2, 5), X = setting.model.experts->count;
  setting.model.experts->count = X * e;
  setting.micro = *rc::gen::inRange<std::int64_t>(1, 4);
  setting.sequence_length = *rc::gen::inRange<std::int64_t>(2, 20);
  setting.recompute = *rc::gen::element(Recompute::none, Recompute::norms_swiglu, Recompute::block);
  setting.layout = layout_of(DataParallel::replicate, e), setting.expert_ranks = e;
  const double most = most_load(setting);
  Count before = 0;
  for (int eighths = 0; eighths <= 8; ++eighths) {
    const double load = most * eighths / 8;
    const Count peak = peak_at(setting, load);
    RC_ASSERT(peak >= before);
    before = peak;
    Setting named = setting;
    named.layer_loads.assign(static_cast<std::size_t>(setting.model.sparse_layers()), load);
    RC_ASSERT(plan(named).peak == peak);
    named.layer_loads.back() = most;
    RC_ASSERT(plan(named).peak >= peak);
  }
  RC_ASSERT(peak_at(setting, most + 1) == before);
}

}  // namespace
}  // namespace assay::spec::memory::expert_load_test
