// labels: unit
#include "spec/step/deferred.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace assay::spec::step {
namespace {

struct DeferredSpec : testing::Test {
  std::string ran;
  auto work(const char* name) {
    return [this, name] { ran += name; };
  }
};

TEST_F(DeferredSpec, WhatWaitsRunsInItsOrderWithTheBlockReadyBehindIt) {
  Deferred deferred;
  deferred.add(work("a"));
  deferred.add(work("b"));
  deferred.add_ready(work("1"));
  deferred.add(work("c"));
  EXPECT_EQ(ran, "");
  deferred.run();
  EXPECT_EQ(ran, "ab1c");
  deferred.run();
  EXPECT_EQ(ran, "ab1c") << "once";
}

/// The second block's buffer for gradients is that of the block after the next.
TEST_F(DeferredSpec, OneBlockAtMostWaitsToBeReady) {
  Deferred deferred;
  deferred.add(work("a"));
  deferred.add_ready(work("1"));
  deferred.add(work("b"));
  deferred.add_ready(work("2"));
  EXPECT_EQ(ran, "a1b");
  deferred.add(work("c"));
  deferred.add_ready(work("3"));
  EXPECT_EQ(ran, "a1b2c");
  deferred.run();
  EXPECT_EQ(ran, "a1b2c3");
}

TEST_F(DeferredSpec, EachFreesItsOperandsWhenItHasRun) {
  const auto operand = std::make_shared<int>(1);
  Deferred later;
  later.add([held = operand] {});
  later.add([&] { EXPECT_EQ(operand.use_count(), 1) << "that of the work before is gone"; });
  EXPECT_EQ(operand.use_count(), 2);
  later.run();
  EXPECT_EQ(operand.use_count(), 1);
}

TEST_F(DeferredSpec, WorkThatRunsTheRestRunsNothingTwice) {
  Deferred deferred;
  deferred.add([&] {
    ran += "a";
    deferred.add(work("b"));
    deferred.run();
  });
  deferred.add(work("c"));
  deferred.run();
  EXPECT_EQ(ran, "abc");
}

/// Of a dense block between sparse ones, expert ranks send nothing.
TEST_F(DeferredSpec, CollectivesOfABlock) {
  ModelSpec model;
  model.layers = 3;
  model.experts = Experts{.count = 4, .active = 2, .width = 3, .first_dense = 1};
  for (const std::int64_t block : {0, 1, 2, 3, 4}) {
    EXPECT_FALSE(collectives_in(model, block, 1, 1)) << block;
    EXPECT_TRUE(collectives_in(model, block, 2, 1)) << block;
    EXPECT_EQ(collectives_in(model, block, 1, 2), block == 2 || block == 3) << block;
  }
}

}  // namespace
}  // namespace assay::spec::step
