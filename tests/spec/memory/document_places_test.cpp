// labels: unit property
#include "spec/memory/document_places.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace assay::spec::memory::document_places_test {
namespace {

TEST(DocumentPlacesSpec, OneEvery256TokensAndOneMoreASequenceAtLeast64) {
  EXPECT_EQ(document_places(24, 2048, 0), 24 + 192);
  EXPECT_EQ(document_places(24, 2048, 216), 216);
  EXPECT_EQ(document_places(24, 2048, 217), 432);
  EXPECT_EQ(document_places(1, 4096, 0), 64);
  EXPECT_EQ(document_places(2, 6, 3), 12);  // as many as tokens
  EXPECT_EQ(document_places(1, 1000, 1000), 1000);
  EXPECT_EQ(document_places(0, 8, 0), 0);
}

RC_GTEST_PROP(DocumentPlacesSpec, AreEnoughNeverMoreThanTokensAndGrowByDoubling, ()) {
  const auto B = *rc::gen::inRange<std::int64_t>(1, 64), T = *rc::gen::inRange<std::int64_t>(1, 5000);
  const auto documents = *rc::gen::inRange<std::int64_t>(B, B * T + 1);
  const std::int64_t places = document_places(B, T, documents), fewest = document_places(B, T, 0);
  RC_ASSERT(places >= documents && places <= B * T && places >= fewest);
  RC_ASSERT(places == fewest || places < 2 * documents);
  RC_ASSERT(places == fewest || places == B * T || places % fewest == 0);
  RC_ASSERT(document_places(B, T, places) == places);
  RC_ASSERT(fewest <= document_places(B + 1, T, 0));  // a larger micro-batch needs no less memory
}

}  // namespace
}  // namespace assay::spec::memory::document_places_test
