// labels: unit property
#include "spec/data/validation_set.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>
#include <vector>

#include "spec/error.hpp"
#include "tests/support/label_of.hpp"

namespace assay::spec::data::validation_set_test {
namespace {

TEST(ValidationSetSpec, C1RejectsWhatIsNoBatch) {
  EXPECT_EQ(tests::label_of([] { validation_batch(1, 0, 1); }), "accepted");
  EXPECT_EQ(tests::label_of([] { validation_batch(0, 1, 1); }), "validation_set_c1");
  EXPECT_EQ(tests::label_of([] { validation_batch(8, -1, 1); }), "validation_set_c1");
  EXPECT_EQ(tests::label_of([] { validation_batch(8, 1, 0); }), "validation_set_c1");
}

TEST(ValidationSetSpec, C2RejectsASequenceThatIsNotEvaluated) {
  const Evaluated ten{.set = 25, .most = 10};
  EXPECT_EQ(tests::label_of([&] { static_cast<void>(ten.place(9)); }), "accepted");
  EXPECT_EQ(tests::label_of([&] { static_cast<void>(ten.place(10)); }), "validation_set_c2");
  EXPECT_EQ(tests::label_of([&] { static_cast<void>(ten.place(-1)); }), "validation_set_c2");
  EXPECT_EQ(tests::label_of([] { static_cast<void>(Evaluated{.set = 0, .most = 0}.place(0)); }),
            "validation_set_c2");
  EXPECT_EQ(
      tests::label_of([] { static_cast<void>(Evaluated{.set = 1, .most = std::int64_t{1} << 31}.place(0)); }),
      "validation_set_c2");
}

TEST(ValidationSetSpec, TheExampleOfThePage) {
  EXPECT_EQ(validation_batch(1024, 10, 1), 4);
  std::vector<std::int64_t> places;
  for (std::int64_t i = 0; i < 10; ++i) places.push_back(Evaluated{.set = 25, .most = 10}.place(i));
  EXPECT_EQ(places, (std::vector<std::int64_t>{0, 2, 5, 7, 10, 12, 15, 17, 20, 22}));
  const ValidationRounds rounds{.sequences = 10, .batch = 4, .ranks = 2};
  EXPECT_EQ(rounds.count(), 2);
  EXPECT_EQ(rounds.first(0, 1), 4);
  EXPECT_EQ(rounds.first(1, 0), 8);
  EXPECT_GE(rounds.first(1, 1), rounds.sequences) << "nothing is left for rank 1";
}

TEST(ValidationSetSpec, TheBatchHoldsWhatThePageSays) {
  EXPECT_EQ(validation_batch(4096, 0, 1), 1);
  EXPECT_EQ(validation_batch(100'000, 0, 1), 1);
  EXPECT_EQ(validation_batch(128, 0, 1), 32);
  EXPECT_EQ(validation_batch(128, 5, 1), 5);
  EXPECT_EQ(validation_batch(4097, 0, 2), 2) << "tensor ranks divide the tokens";
  EXPECT_EQ(validation_batch(5, 3, 4), 4);
}

RC_GTEST_PROP(ValidationSetSpec, PlacesRiseAndAllAreEvaluatedWhereAskedFor, ()) {
  const Evaluated some{.set = *rc::gen::inRange<std::int64_t>(1, 400),
                       .most = *rc::gen::inRange<std::int64_t>(0, 500)};
  std::int64_t before = -1;
  for (std::int64_t i = 0; i < some.count(); ++i) {
    const std::int64_t place = some.place(i);
    RC_ASSERT(place > before);
    RC_ASSERT(place == i * some.set / some.count());
    before = place;
  }
  RC_ASSERT(before < some.set);
  if (some.most == 0) RC_ASSERT(some.count() == some.set);
}

TEST(ValidationSetSpec, PlacesOfAHugeSetDoNotOverflow) {
  const std::int64_t set = std::int64_t{1} << 62, most = 1'000'000'000;
  const Evaluated some{.set = set, .most = most};
  EXPECT_EQ(some.place(0), 0);
  EXPECT_EQ(some.place(most - 1), set / most * (most - 1) + set % most * (most - 1) / most);
  EXPECT_EQ((Evaluated{.set = set, .most = 0}.place(set - 1)), set - 1);
}

RC_GTEST_PROP(ValidationSetSpec, EverySequenceIsInOneRoundOfOneRank, ()) {
  const ValidationRounds rounds{.sequences = *rc::gen::inRange<std::int64_t>(1, 60),
                                .batch = *rc::gen::inRange<std::int64_t>(1, 9),
                                .ranks = *rc::gen::inRange<std::int64_t>(1, 6)};
  std::set<std::int64_t> seen;
  for (std::int64_t round = 0; round < rounds.count(); ++round)
    for (std::int64_t rank = 0; rank < rounds.ranks; ++rank)
      for (std::int64_t i = 0; i < rounds.batch; ++i)
        RC_ASSERT(seen.insert(rounds.first(round, rank) + i).second);
  RC_ASSERT(*seen.begin() == 0);
  RC_ASSERT(*seen.rbegin() + 1 == static_cast<std::int64_t>(seen.size()));
  RC_ASSERT(static_cast<std::int64_t>(seen.size()) >= rounds.sequences);
  RC_ASSERT(rounds.first(rounds.count() - 1, 0) < rounds.sequences);  // no round is empty
}

TEST(ValidationSetSpec, LossesAreSummedInTheirOrder) {
  EXPECT_EQ(sum_in_order(std::vector<double>{1e16, 1, -1e16, 1}), 1);
  EXPECT_EQ(sum_in_order(std::vector<double>{1e16, -1e16, 1, 1}), 2);
}

}  // namespace
}  // namespace assay::spec::data::validation_set_test
