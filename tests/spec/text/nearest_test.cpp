// labels: unit property
#include "spec/text/nearest.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <utility>

namespace assay::spec::nearest_test {
namespace {

TEST(NearestSpec, CountsEachKindOfSlipAsOne) {
  EXPECT_EQ(edit_distance("train", "train"), 0u);
  EXPECT_EQ(edit_distance("tran", "train"), 1u);    // missing
  EXPECT_EQ(edit_distance("traiin", "train"), 1u);  // doubled
  EXPECT_EQ(edit_distance("troin", "train"), 1u);   // wrong
  EXPECT_EQ(edit_distance("tarin", "train"), 1u);   // swapped
  EXPECT_EQ(edit_distance("", "abc"), 3u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
}

TEST(NearestSpec, FindsTheWordThatWasMeant) {
  const std::vector<std::string> verbs = {"train", "flops", "report", "doctor", "config"};
  EXPECT_EQ(nearest("trian", verbs), "train");
  EXPECT_EQ(nearest("REPROT", verbs), "report");
  EXPECT_EQ(nearest("docter", verbs), "doctor");
}

TEST(NearestSpec, OfEquallyNearWordsTheOneThatSharesMoreOfItsEndsIsMeant) {
  EXPECT_EQ(nearest("llama3-405b", {"llama3-70b", "llama3-8b", "llama3.1-405b"}), "llama3.1-405b");
  EXPECT_EQ(nearest("ab", {"xb", "ax"}), "xb");  // as much: the first
}

TEST(NearestSpec, SaysNothingWhenNothingIsNear) {
  EXPECT_EQ(nearest("quantum", {"train", "flops"}), std::nullopt);
  EXPECT_EQ(nearest("x", {}), std::nullopt);
}

RC_GTEST_PROP(NearestSpec, DistanceIsSymmetricAndZeroOnlyForEqualWords,
              (const std::string& a, const std::string& b)) {
  RC_ASSERT(edit_distance(a, b) == edit_distance(b, a));
  RC_ASSERT((edit_distance(a, b) == 0) == (a == b));
}

RC_GTEST_PROP(NearestSpec, OneSlipIsAlwaysCorrected, ()) {
  const std::vector<std::string> known = {"batch.sequences", "optimizer.learning_rate",
                                          "schedule.warmup_steps"};
  const std::string word = *rc::gen::elementOf(known);
  std::string slip = word;
  const auto at = *rc::gen::inRange<std::size_t>(0, word.size() - 1);
  switch (*rc::gen::inRange(0, 3)) {
    case 0:
      slip.erase(at, 1);
      break;
    case 1:
      std::swap(slip[at], slip[at + 1]);
      break;
    default:
      slip[at] = '#';
  }
  RC_ASSERT(nearest(slip, known) == word);
}

}  // namespace
}  // namespace assay::spec::nearest_test
