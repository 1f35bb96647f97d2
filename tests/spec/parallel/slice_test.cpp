// labels: unit property
// Rectangles of parameters: ranges cut into them, what tensor ranks hold, equal parts.
#include "spec/parallel/slice.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <vector>

namespace assay::spec::slice_test {
namespace {

using Shape = std::vector<std::int64_t>;

TEST(SliceSpec, TheExampleOfThePage) {
  const std::vector<Slice> slices = slices_of_range(4, 17, 6);
  ASSERT_EQ(slices.size(), 3u);
  EXPECT_EQ(suffix_of(slices[0], {4, 6}), "[0:1,4:6]");
  EXPECT_EQ(suffix_of(slices[1], {4, 6}), "[1:2,0:6]");
  EXPECT_EQ(suffix_of(slices[2], {4, 6}), "[2:3,0:5]");

  const Parameter whole{
      .name = "w", .shape = {4, 12}, .role = Role::down, .block = 1, .offset = 0, .size = 48};
  Parameter own = whole;
  own.shape = {4, 6}, own.size = 24;
  const Placement second = placement(whole, own, {.ranks = 2, .rank = 1});
  const std::vector<HeldRange> held = held_ranges(second, own, 4, 17);
  ASSERT_EQ(held.size(), 3u);
  EXPECT_EQ(suffix_of(held[0].slice, whole.shape), "[0:1,10:12]");
  EXPECT_EQ(suffix_of(held[1].slice, whole.shape), "[1:2,6:12]");
  EXPECT_EQ(suffix_of(held[2].slice, whole.shape), "[2:3,6:11]");
  EXPECT_EQ(held[0].first, 4);
  EXPECT_EQ(held[1].first, 6);
  EXPECT_EQ(held[2].first, 12);
}

TEST(SliceSpec, NamesAndShapes) {
  EXPECT_EQ(whole_slice({4, 6}), (Slice{0, 4, 0, 6}));
  EXPECT_EQ(whole_slice({2, 3, 4}), (Slice{0, 2, 0, 12}));
  EXPECT_EQ(whole_slice({5}), (Slice{0, 5, 0, 1}));
  EXPECT_EQ(suffix_of({0, 4, 0, 6}, {4, 6}), "");
  EXPECT_EQ(suffix_of({1, 3, 0, 1}, {5}), "[1:4]");
  EXPECT_EQ(shape_of({0, 4, 0, 6}, {4, 6}), (Shape{4, 6}));
  EXPECT_EQ(shape_of({1, 3, 2, 4}, {4, 6}), (Shape{3, 4}));
  EXPECT_EQ(shape_of({1, 3, 0, 1}, {5}), (Shape{3}));
  EXPECT_EQ(relative({3, 2, 7, 1}, {1, 4, 5, 9}), (Slice{2, 2, 2, 1}));
  EXPECT_EQ(intersection({0, 4, 0, 6}, {2, 9, 5, 9}), (Slice{2, 2, 5, 1}));
  EXPECT_EQ(intersection({0, 4, 0, 6}, {4, 9, 5, 9}), Slice{});
  EXPECT_EQ(intersection({0, 4, 0, 6}, {2, 9, 6, 9}), Slice{});
}

/// The padding of a vocabulary is of no slice.
TEST(SliceSpec, PaddedRowsAreNotHeld) {
  const Parameter whole{
      .name = "e", .shape = {7, 3}, .role = Role::embedding, .block = 0, .offset = 0, .size = 21};
  Parameter own = whole;
  own.shape = {4, 3}, own.size = 12;
  const auto held = held_ranges(placement(whole, own, {.ranks = 2, .rank = 1}), own, 0, 12);
  ASSERT_EQ(held.size(), 1u);
  EXPECT_EQ(held[0].slice, (Slice{4, 3, 0, 3}));
  EXPECT_TRUE(held_ranges(placement(whole, own, {.ranks = 2, .rank = 1}), own, 9, 12).empty());
}

RC_GTEST_PROP(SliceSpecProperty, ARangeIsItsRectanglesInOrder, ()) {
  const auto columns = *rc::gen::inRange<std::int64_t>(1, 9);
  const auto begin = *rc::gen::inRange<std::int64_t>(0, 40), size = *rc::gen::inRange<std::int64_t>(0, 40);
  const std::vector<Slice> slices = slices_of_range(begin, begin + size, columns);
  RC_ASSERT(slices.size() <= 3u);
  std::int64_t next = begin;
  for (const Slice& slice : slices) {
    RC_ASSERT(slice.rows > 0 && slice.columns > 0 && slice.column + slice.columns <= columns);
    RC_ASSERT(slice.rows == 1 || slice.columns == columns);
    for (std::int64_t r = 0; r < slice.rows; ++r)
      for (std::int64_t c = 0; c < slice.columns; ++c)
        RC_ASSERT((slice.row + r) * columns + slice.column + c == next++);
  }
  RC_ASSERT(next == begin + size);
}

RC_GTEST_PROP(SliceSpecProperty, EqualPartsAreAllAndDifferByOne, ()) {
  const auto parts = *rc::gen::inRange<std::int64_t>(1, 20);
  const auto size = *rc::gen::inRange<std::int64_t>(0, 200) + *rc::gen::element<std::int64_t>(0, 1LL << 61);
  std::int64_t next = 0;
  for (std::int64_t part = 0; part < parts; ++part) {
    const Inventory::Range range = equal_part(size, part, parts);
    RC_ASSERT(range.begin == next);
    RC_ASSERT(range.end - range.begin >= size / parts && range.end - range.begin <= size / parts + 1);
    next = range.end;
  }
  RC_ASSERT(next == size);
}

}  // namespace
}  // namespace assay::spec::slice_test
