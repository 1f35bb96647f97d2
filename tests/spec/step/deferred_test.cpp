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

TEST_F(DeferredSpec, WithOneRankEverythingRunsAtOnceInItsOrder) {
  Deferred deferred(/*waits=*/false);
  for (const char* name : {"a", "b"}) deferred.add(work(name));
  deferred.add_ready(work("1"));
  deferred.add_ready(work("2"));
  EXPECT_EQ(ran, "ab12");
  EXPECT_TRUE(deferred.empty());
}

TEST_F(DeferredSpec, WhatWaitsRunsInItsOrderWithTheBlockReadyBehindIt) {
  Deferred deferred(/*waits=*/true);
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
  Deferred deferred(/*waits=*/true);
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
  Deferred at_once(/*waits=*/false), later(/*waits=*/true);
  at_once.add([held = operand] {});
  EXPECT_EQ(operand.use_count(), 1);
  later.add([held = operand] {});
  later.add([&] { EXPECT_EQ(operand.use_count(), 1) << "that of the work before is gone"; });
  EXPECT_EQ(operand.use_count(), 2);
  later.run();
  EXPECT_EQ(operand.use_count(), 1);
}

TEST_F(DeferredSpec, WorkThatRunsTheRestRunsNothingTwice) {
  Deferred deferred(/*waits=*/true);
  deferred.add([&] {
    ran += "a";
    deferred.add(work("b"));
    deferred.run();
  });
  deferred.add(work("c"));
  deferred.run();
  EXPECT_EQ(ran, "abc");
}

}  // namespace
}  // namespace assay::spec::step
