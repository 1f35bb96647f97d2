// labels: unit property
#include "spec/data/sample_order.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <limits>
#include <map>
#include <utility>

#include "spec/data/permutation.hpp"
#include "spec/error.hpp"
#include "tests/support/label_of.hpp"

namespace assay::spec::data::sample_order_test {
namespace {

TEST(SampleOrderSpec, C1RejectsEmptySetsAndIndicesOutsideTheStep) {
  EXPECT_EQ(tests::label_of([] { sample({1, 5, 4}, 0, 3); }), "accepted");
  EXPECT_EQ(tests::label_of([] { sample({1, 5, 4}, 0, 4); }), "sample_order_c1");
  EXPECT_EQ(tests::label_of([] { sample({1, 5, 4}, 0, -1); }), "sample_order_c1");
  EXPECT_EQ(tests::label_of([] { sample({1, 5, 4}, -1, 0); }), "sample_order_c1");
  EXPECT_EQ(tests::label_of([] { step_samples({1, 0, 4}, 0); }), "sample_order_c1");
  EXPECT_EQ(tests::label_of([] { step_samples({1, 5, 0}, 0); }), "sample_order_c1");
  EXPECT_EQ(tests::label_of([] {
              step_samples({1, 5, 4}, std::numeric_limits<std::int64_t>::max() / 4);
            }),
            "sample_order_c1");
}

TEST(SampleOrderSpec, C2RejectsABatchThatDoesNotDivide) {
  EXPECT_EQ(accumulation({1, 5, 12}, {2, 3}), 2);
  for (const BatchSplit& split : {BatchSplit{5, 1}, BatchSplit{2, 5}, BatchSplit{0, 1}, BatchSplit{1, 0},
                                  BatchSplit{-2, 3}, BatchSplit{12, 2}})
    EXPECT_EQ(tests::label_of([&] {
                accumulation({1, 5, 12}, split);
              }),
              "sample_order_c2")
        << split.micro << " " << split.ranks;
}

TEST(SampleOrderSpec, C3RejectsARankOrMicroBatchThatIsNotThere) {
  const SampleOrder order{1, 5, 12};
  EXPECT_EQ(tests::label_of([&] { micro_batch_samples(order, {2, 3}, 0, 2, 1); }), "accepted");
  EXPECT_EQ(tests::label_of([&] { micro_batch_samples(order, {2, 3}, 0, 3, 0); }), "sample_order_c3");
  EXPECT_EQ(tests::label_of([&] { micro_batch_samples(order, {2, 3}, 0, 0, 2); }), "sample_order_c3");
  EXPECT_EQ(tests::label_of([&] { micro_batch_samples(order, {2, 3}, 0, -1, 0); }), "sample_order_c3");
}

TEST(SampleOrderSpec, ExampleOfThePageGoesOnIntoTheNextEpoch) {
  const SampleOrder order{9, 5, 4};
  const Permutation first(9, 0, 5), second(9, 1, 5);
  EXPECT_EQ(step_samples(order, 0), (std::vector<std::int64_t>{first(0), first(1), first(2), first(3)}));
  EXPECT_EQ(step_samples(order, 1), (std::vector<std::int64_t>{first(4), second(0), second(1), second(2)}));
  EXPECT_EQ(first_index(order, {1, 2}, 0, 1), 2);
  EXPECT_EQ(first_index(order, {1, 2}, 1, 1), 3);
}

RC_GTEST_PROP(SampleOrderSpec, AnyRanksReadTheSameGlobalBatch, (std::uint64_t seed)) {
  const BatchSplit split{*rc::gen::inRange<std::int64_t>(1, 5), *rc::gen::inRange<std::int64_t>(1, 9)};
  const auto wanted = *rc::gen::inRange<std::int64_t>(1, 5);
  const SampleOrder order{seed, *rc::gen::inRange<std::int64_t>(1, 200), wanted * split.micro * split.ranks};
  const auto step = *rc::gen::inRange<std::int64_t>(0, 50);
  RC_ASSERT(accumulation(order, split) == wanted);

  std::vector<std::int64_t> dealt(static_cast<std::size_t>(order.sequences), -1);
  for (std::int64_t rank = 0; rank < split.ranks; ++rank) {
    for (std::int64_t m = 0; m < wanted; ++m) {
      const auto samples = micro_batch_samples(order, split, step, rank, m);
      RC_ASSERT(static_cast<std::int64_t>(samples.size()) == split.micro);
      for (std::int64_t i = 0; i < split.micro; ++i) {
        auto& slot = dealt[static_cast<std::size_t>(first_index(order, split, rank, m) + i)];
        RC_ASSERT(slot == -1);
        slot = samples[static_cast<std::size_t>(i)];
      }
    }
  }
  RC_ASSERT(dealt == step_samples(order, step));
  RC_ASSERT(dealt.front() == sample(order, step, 0));
  RC_ASSERT(dealt.back() == sample(order, step, order.sequences - 1));
}

RC_GTEST_PROP(SampleOrderSpec, EveryEpochReadsEverySampleOnce, (std::uint64_t seed)) {
  const SampleOrder order{seed, *rc::gen::inRange<std::int64_t>(1, 60),
                          *rc::gen::inRange<std::int64_t>(1, 100)};
  std::map<std::pair<std::int64_t, std::int64_t>, int> reads;  // (epoch, sample)
  std::int64_t position = 0;
  for (std::int64_t step = 0; position < 3 * order.samples; ++step)
    for (const std::int64_t id : step_samples(order, step)) {
      RC_ASSERT(id >= 0 && id < order.samples);
      ++reads[{position++ / order.samples, id}];
    }
  for (std::int64_t epoch = 0; epoch < 3; ++epoch)
    for (std::int64_t id = 0; id < order.samples; ++id) RC_ASSERT((reads[{epoch, id}]) == 1);
}

TEST(SampleOrderSpec, C4RejectsWhatLeavesNothingToTrainOn) {
  EXPECT_EQ(tests::label_of([] { step_samples({1, 5, 4, 4}, 0); }), "accepted");
  EXPECT_EQ(tests::label_of([] { step_samples({1, 5, 4, 5}, 0); }), "sample_order_c4");
  EXPECT_EQ(tests::label_of([] { step_samples({1, 5, 4, -1}, 0); }), "sample_order_c4");
  EXPECT_EQ(tests::label_of([] { held_out_sample({1, 5, 4, 2}, 1); }), "accepted");
  EXPECT_EQ(tests::label_of([] { held_out_sample({1, 5, 4, 2}, 2); }), "sample_order_c4");
  EXPECT_EQ(tests::label_of([] { is_held_out({1, 5, 4, 5}, 0); }), "sample_order_c4");
}

TEST(SampleOrderSpec, AShareIsTheNearestNumberOfSamples) {
  EXPECT_EQ(held_out_samples(0, 100), 0);
  EXPECT_EQ(held_out_samples(0.29, 100), 29);
  EXPECT_EQ(held_out_samples(0.004, 100), 0);
  EXPECT_EQ(held_out_samples(0.5, 7), 4);
}

RC_GTEST_PROP(SampleOrderSpec, WhatIsHeldOutIsNeverReadAndTheRestOnceAnEpoch, (std::uint64_t seed)) {
  SampleOrder order{seed, *rc::gen::inRange<std::int64_t>(2, 60), *rc::gen::inRange<std::int64_t>(1, 100)};
  order.held_out = *rc::gen::inRange<std::int64_t>(1, order.samples);
  std::map<std::pair<std::int64_t, std::int64_t>, int> reads;  // (epoch, sample)
  std::int64_t position = 0;
  for (std::int64_t step = 0; position < 3 * order.trained(); ++step)
    for (const std::int64_t id : step_samples(order, step)) ++reads[{position++ / order.trained(), id}];
  for (std::int64_t epoch = 0; epoch < 3; ++epoch)
    for (std::int64_t id = 0; id < order.samples; ++id)
      RC_ASSERT((reads[{epoch, id}]) == (is_held_out(order, id) ? 0 : 1));

  // Those held out are numbered, each once; which they are is no matter of the batch, and more include fewer.
  std::map<std::int64_t, int> numbered;
  for (std::int64_t i = 0; i < order.held_out; ++i) ++numbered[held_out_sample(order, i)];
  SampleOrder fewer = order;
  fewer.sequences = 1, fewer.held_out = *rc::gen::inRange<std::int64_t>(0, order.held_out + 1);
  for (std::int64_t id = 0; id < order.samples; ++id) {
    RC_ASSERT(numbered[id] == (is_held_out(order, id) ? 1 : 0));
    RC_ASSERT(is_held_out(order, id) || !is_held_out(fewer, id));
  }
}

TEST(SampleOrderSpec, SeedsHoldOutOtherSamplesInAnOrderOfTheirOwn) {
  const auto held_out = [](std::uint64_t seed) {
    std::vector<std::int64_t> all;
    for (std::int64_t i = 0; i < 50; ++i) all.push_back(held_out_sample({seed, 1000, 1, 50}, i));
    return all;
  };
  EXPECT_NE(held_out(1), held_out(2));
  // Not the first samples that an epoch without a held-out share would read.
  EXPECT_NE(held_out(1), step_samples({1, 1000, 50}, 0));
}

// The first value is that of the xxHash specification for empty input, the others of the reference library
// 0.8.1.
TEST(SampleOrderSpec, HashIsXxh3OfLittleEndianIds) {
  EXPECT_EQ(sample_hash({}), 0x2D06800538D394C2u);
  EXPECT_EQ(sample_hash(std::vector<std::int64_t>{0, 1, 2}), 0x7FB6F0C094F81C5Du);
  EXPECT_EQ(sample_hash(std::vector<std::int64_t>{0x0102030405060708}), 0x908FAF195058CA9Eu);
}

RC_GTEST_PROP(SampleOrderSpec, HashSeesEveryIdAndTheOrder, ()) {
  const auto ids = *rc::gen::container<std::vector<std::int64_t>>(5, rc::gen::arbitrary<std::int64_t>());
  auto changed = ids;
  const auto at = *rc::gen::inRange<std::size_t>(0, 4);
  if (*rc::gen::arbitrary<bool>()) {
    changed[at] ^= std::int64_t{1} << *rc::gen::inRange(0, 63);
  } else {
    std::swap(changed[at], changed[at + 1]);
    RC_PRE(changed != ids);
  }
  RC_ASSERT(sample_hash(ids) != sample_hash(changed));
}

/// The products pass 63 bits from 2,896 ranks on.
TEST(SampleOrderSpec, ADifferingHashIsSeenAmongAnyNumberOfRanks) {
  for (const std::int64_t ranks : {1, 2, 3, 2895, 2896, 4096, 1 << 20, 1 << 23})
    for (const std::int64_t hash : {cut_hash(0), cut_hash(1), cut_hash(0xabcde), cut_hash(~0ull)}) {
      EXPECT_TRUE(all_the_same(ranks * hash, ranks * hash * hash, ranks)) << ranks << " x " << hash;
      if (ranks == 1) continue;
      for (const std::int64_t other : {hash ^ 1, hash ^ 0x80000, cut_hash(~0ull - 1)}) {
        if (other == hash) continue;
        const std::int64_t rest = ranks - 1;
        EXPECT_FALSE(all_the_same(rest * hash + other, rest * hash * hash + other * other, ranks))
            << ranks << " ranks: " << other << " among " << hash;
      }
    }
}

RC_GTEST_PROP(SampleOrderSpec, TheSumsAgreeWhereAllHashesDoAndNowhereElse, ()) {
  const auto hashes = *rc::gen::nonEmpty(rc::gen::container<std::vector<std::uint64_t>>(
      rc::gen::oneOf(rc::gen::just(std::uint64_t{77}), rc::gen::arbitrary<std::uint64_t>())));
  std::int64_t sum = 0, squares = 0;
  bool same = true;
  for (const std::uint64_t hash : hashes) {
    const std::int64_t cut = cut_hash(hash);
    sum += cut, squares += cut * cut;
    same = same && cut == cut_hash(hashes[0]);
  }
  RC_ASSERT(all_the_same(sum, squares, static_cast<std::int64_t>(hashes.size())) == same);
}

}  // namespace
}  // namespace assay::spec::data::sample_order_test
