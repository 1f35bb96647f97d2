// labels: unit property
#include "spec/plan/layouts_that_fit.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "spec/config/load.hpp"
#include "tests/support/draw_model.hpp"

namespace assay::spec::memory::layouts_that_fit_test {
namespace {

/// llama3-8b in bf16 with fp32 states on `ranks` GPUs, in micro-batches of two sequences of 2,048 tokens,
/// four a step.
Setting llama(DataParallel data, std::int64_t ranks, std::int64_t shard_ranks = 0) {
  Setting setting;
  setting.model = find_model("llama3-8b");
  setting.dtype = Dtype::bf16, setting.states = Dtype::f32, setting.machine = Machine::cuda;
  setting.micro = 2, setting.micro_batches = 4, setting.sequence_length = 2048;
  setting.layout = layout_of(data, ranks, shard_ranks, ranks);
  return setting;
}

Count gigabytes(std::int64_t number) { return Count(number) * 1'000'000'000; }

TEST(LayoutsThatFitSpec, WhatNoGpuHoldsAloneIsShared) {
  // 8.03e9 parameters: 18 bytes each replicated, 6 and 12/4 in zero1, 18/4 and two whole blocks in shard.
  const auto found = layouts_that_fit(llama(DataParallel::replicate, 4), 4, gigabytes(140));
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].layout.data, DataParallel::zero1);
  EXPECT_EQ(found[1].layout.data, DataParallel::shard);
  for (const LayoutWay& each : found) {
    EXPECT_EQ(each.way.micro, 2);
    EXPECT_LE(each.way.peak, gigabytes(140));
  }
  const auto smaller = layouts_that_fit(llama(DataParallel::replicate, 4), 4, gigabytes(70));
  ASSERT_EQ(smaller.size(), 1u);
  EXPECT_EQ(smaller[0].layout.data, DataParallel::shard);
  EXPECT_TRUE(layouts_that_fit(llama(DataParallel::replicate, 4), 4, gigabytes(10)).empty());
}

TEST(LayoutsThatFitSpec, HybridIsOfWholeHostsWhereThereAreSeveral) {
  // 16 ranks on hosts of 2: shards over 2, 4 and 8 ranks are hybrid. With room for 4, 18/2 bytes a parameter
  // do not fit, and neither do zero1's 6 + 12/16.
  const Count capacity = plan(llama(DataParallel::hybrid, 16, 4)).peak;
  const auto found = layouts_that_fit(llama(DataParallel::replicate, 16), 2, capacity);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].layout, (Layout{DataParallel::hybrid, 16, 4}));
  EXPECT_EQ(found[1].layout, (Layout{DataParallel::shard, 16, 16}));
  for (const std::int64_t per_host : {0, 1, 16})
    for (const LayoutWay& each : layouts_that_fit(llama(DataParallel::replicate, 16), per_host, capacity))
      EXPECT_NE(each.layout.data, DataParallel::hybrid) << per_host;
  for (const LayoutWay& each : layouts_that_fit(llama(DataParallel::hybrid, 16, 4), 2, capacity))
    EXPECT_NE(each.layout.shard_ranks, 4);
}

TEST(LayoutsThatFitSpec, ASmallerMicroBatchComesAfterLayoutsThatNeedNone) {
  const Setting asked = llama(DataParallel::replicate, 4);
  Setting zero1 = asked;
  zero1.layout = layout_of(DataParallel::zero1, 4);
  const Count capacity = plan(zero1).peak - 1;
  const auto found = layouts_that_fit(asked, 4, capacity);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].layout.data, DataParallel::shard);
  EXPECT_EQ(found[0].way.micro, 2);
  EXPECT_EQ(found[1].layout.data, DataParallel::zero1);
  EXPECT_EQ(found[1].way.micro, 1);
}

RC_GTEST_PROP(LayoutsThatFitSpec, WhatIsNamedFits, ()) {
  Setting setting;
  setting.model = tests::draw_model();
  setting.dtype = *rc::gen::element(Dtype::f32, Dtype::bf16);
  setting.micro = *rc::gen::inRange<std::int64_t>(1, 9);
  setting.micro_batches = *rc::gen::inRange<std::int64_t>(1, 5);
  setting.sequence_length = *rc::gen::inRange<std::int64_t>(1, 33);
  const auto ranks = *rc::gen::inRange<std::int64_t>(2, 17), per_host = *rc::gen::inRange<std::int64_t>(0, 5);
  const auto data = *rc::gen::element(DataParallel::replicate, DataParallel::zero1, DataParallel::shard);
  setting.layout = layout_of(data, ranks);
  const Count capacity(plan(setting).peak.to_int64() * *rc::gen::inRange<std::int64_t>(10, 120) / 100);
  for (const LayoutWay& each : layouts_that_fit(setting, per_host, capacity)) {
    Setting other = setting;
    other.layout = each.layout;
    other.micro = each.way.micro, other.recompute = each.way.recompute;
    RC_ASSERT(setting.micro * setting.micro_batches % other.micro == 0);
    other.micro_batches = setting.micro * setting.micro_batches / other.micro;
    RC_ASSERT(!(other.layout == setting.layout) && other.layout.ranks == ranks);
    RC_ASSERT(plan(other).peak == each.way.peak && each.way.peak <= capacity);
  }
}

}  // namespace
}  // namespace assay::spec::memory::layouts_that_fit_test
