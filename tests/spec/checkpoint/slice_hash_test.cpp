// labels: unit property
// The hash of a slice: the sum of its parts' hashes, whatever the parts.
#include "spec/checkpoint/slice_hash.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <bit>
#include <cstring>
#include <limits>
#include <set>
#include <stdexcept>
#include <vector>

namespace assay::spec::slice_hash_test {
namespace {

std::vector<std::byte> drawn_bytes(std::size_t count, std::uint64_t seed) {
  std::vector<std::byte> bytes(count);
  for (std::byte& byte : bytes) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    byte = static_cast<std::byte>(seed >> 56);
  }
  return bytes;
}

/// Worked apart from the code: one element, by the page's equation.
TEST(SliceHashSpec, OneElementByHand) {
  const std::uint32_t bits = 0x3F800000;
  std::byte bytes[4];
  std::memcpy(bytes, &bits, 4);
  // Element (2, 3) of a parameter with 10 columns has place 23.
  unsigned __int128 x = static_cast<unsigned __int128>(0x9E3779B97F4A7C15u) * 24 + bits;
  std::uint64_t low = static_cast<std::uint64_t>(x);
  for (int i = 0; i < 2; ++i) low = (low ^ (low >> 32)) * 0xD6E8FEB86659FD93u;
  EXPECT_EQ(slice_hash(bytes, 4, {2, 1, 3, 1}, 10), low ^ (low >> 32));
  EXPECT_EQ(hash_text(0x0123456789abcdefu), "0123456789abcdef");
  EXPECT_EQ(hash_text(0), "0000000000000000");
  EXPECT_THROW(slice_hash(bytes, 3, {2, 1, 3, 1}, 10), std::invalid_argument);
  EXPECT_THROW(slice_hash(bytes, 8, {2, 1, 3, 1}, 10), std::invalid_argument) << "too few bytes";
}

RC_GTEST_PROP(SliceHashSpecProperty, IsTheSumOverAnyTwoCuts, ()) {
  const auto element = *rc::gen::element<std::size_t>(2, 4, 8);
  const auto rows = *rc::gen::inRange<std::int64_t>(1, 6), columns = *rc::gen::inRange<std::int64_t>(1, 6);
  const auto row = *rc::gen::inRange<std::int64_t>(0, 5), column = *rc::gen::inRange<std::int64_t>(0, 5);
  const auto cut_row = *rc::gen::inRange<std::int64_t>(0, 6),
             cut_column = *rc::gen::inRange<std::int64_t>(0, 6);
  const std::int64_t parameter_columns = 12;
  const Slice all{row, rows, column, columns};
  const std::vector<std::byte> bytes =
      drawn_bytes(static_cast<std::size_t>(all.size()) * element, *rc::gen::arbitrary<std::uint64_t>());
  const std::size_t row_bytes = static_cast<std::size_t>(columns) * element;
  std::uint64_t sum = 0;
  for (const auto& [r0, r1] : {std::pair<std::int64_t, std::int64_t>{0, cut_row}, {cut_row, rows}})
    for (const auto& [c0, c1] :
         {std::pair<std::int64_t, std::int64_t>{0, cut_column}, {cut_column, columns}}) {
      const Slice part = intersection({row + r0, r1 - r0, column + c0, c1 - c0}, all);
      if (part.size() == 0) continue;
      const Slice at = relative(part, all);
      const std::size_t begin =
          static_cast<std::size_t>(at.row) * row_bytes + static_cast<std::size_t>(at.column) * element;
      sum += slice_hash(std::span(bytes).subspan(begin), element, part, parameter_columns, row_bytes);
    }
  RC_ASSERT(sum == slice_hash(bytes, element, all, parameter_columns));
}

RC_GTEST_PROP(SliceHashSpecProperty, EveryFlippedBitAndEverySwapChangesIt, ()) {
  const auto element = *rc::gen::element<std::size_t>(2, 4, 8);
  const Slice slice{1, 3, 2, 4};
  std::vector<std::byte> bytes = drawn_bytes(12 * element, *rc::gen::arbitrary<std::uint64_t>());
  const std::uint64_t hash = slice_hash(bytes, element, slice, 9);
  const auto bit = *rc::gen::inRange<std::size_t>(0, 12 * 16);
  bytes[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
  RC_ASSERT(slice_hash(bytes, element, slice, 9) != hash);
  bytes[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
  // The same elements at another place, in another order, of another width.
  RC_ASSERT(slice_hash(bytes, element, {2, 3, 2, 4}, 9) != hash);
  RC_ASSERT(slice_hash(bytes, element, slice, 10) != hash);
  std::vector<std::byte> swapped = bytes;
  std::swap_ranges(swapped.begin(), swapped.begin() + static_cast<std::ptrdiff_t>(element),
                   swapped.end() - static_cast<std::ptrdiff_t>(element));
  RC_ASSERT(swapped == bytes || slice_hash(swapped, element, slice, 9) != hash);
}

template <class T>
bool finite(const std::string& dtype, std::vector<T> values) {
  return all_finite(std::as_bytes(std::span(values)), dtype);
}

TEST(SliceHashSpec, KnowsWhatIsNotFinite) {
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity(),
               most = std::numeric_limits<double>::max();
  EXPECT_TRUE(finite<double>("F64", {0, -most, 5e-324}));
  EXPECT_FALSE(finite<double>("F64", {0, 1, nan}));
  EXPECT_FALSE(finite<double>("F64", {-inf, 1, 2}));
  EXPECT_TRUE(finite<float>("F32", {0, std::numeric_limits<float>::max(), -1}));
  EXPECT_FALSE(finite<float>("F32", {0, std::numeric_limits<float>::infinity(), -1}));
  EXPECT_TRUE(finite<std::uint16_t>("BF16", {0x7F7F, 0xFF7F, 0x7C00}));
  EXPECT_FALSE(finite<std::uint16_t>("BF16", {0, 0xFF80}));
  EXPECT_TRUE(finite<std::uint16_t>("F16", {0x7BFF, 0x0001}));
  EXPECT_FALSE(finite<std::uint16_t>("F16", {0x7C01}));
  EXPECT_THROW(finite<std::uint16_t>("I16", {1}), std::invalid_argument);
}

}  // namespace
}  // namespace assay::spec::slice_hash_test
