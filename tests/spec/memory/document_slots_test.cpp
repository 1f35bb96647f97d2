// labels: unit property
#include "spec/memory/document_slots.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace assay::spec::memory::document_slots_test {
namespace {

TEST(DocumentSlotsSpec, OneEvery256TokensAndOneMoreASequenceAtLeast64) {
  EXPECT_EQ(document_slots(24, 2048, 0), 24 + 192);
  EXPECT_EQ(document_slots(24, 2048, 216), 216);
  EXPECT_EQ(document_slots(24, 2048, 217), 432);
  EXPECT_EQ(document_slots(1, 4096, 0), 64);
  EXPECT_EQ(document_slots(2, 6, 3), 12);  // as many as tokens
  EXPECT_EQ(document_slots(1, 1000, 1000), 1000);
  EXPECT_EQ(document_slots(0, 8, 0), 0);
}

RC_GTEST_PROP(DocumentSlotsSpec, AreEnoughNeverMoreThanTokensAndGrowByDoubling, ()) {
  const auto B = *rc::gen::inRange<std::int64_t>(1, 64), T = *rc::gen::inRange<std::int64_t>(1, 5000);
  const auto documents = *rc::gen::inRange<std::int64_t>(B, B * T + 1);
  const std::int64_t slots = document_slots(B, T, documents), fewest = document_slots(B, T, 0);
  RC_ASSERT(slots >= documents && slots <= B * T && slots >= fewest);
  RC_ASSERT(slots == fewest || slots < 2 * documents);
  RC_ASSERT(slots == fewest || slots == B * T || slots % fewest == 0);
  RC_ASSERT(document_slots(B, T, slots) == slots);
  RC_ASSERT(fewest <= document_slots(B + 1, T, 0));  // a larger micro-batch needs no less memory
}

}  // namespace
}  // namespace assay::spec::memory::document_slots_test
