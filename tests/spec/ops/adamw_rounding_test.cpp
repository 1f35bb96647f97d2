// labels: unit
#include "spec/ops/adamw/adamw_rounding.hpp"

#include <gtest/gtest.h>

#include <set>
#include <tuple>

#include "spec/error.hpp"

namespace assay::spec::adamw_rounding_test {
namespace {

adamw::RoundingBits bits_of(std::uint64_t seed, std::int64_t step, std::uint64_t entry) {
  return adamw::rounding_bits(adamw::rounding_stream(seed, step).block(entry / 2), entry);
}

TEST(AdamwRoundingSpec, C7RejectsAStepThatTheStreamCannotHold) {
  EXPECT_NO_THROW(adamw::rounding_stream(1, 1));
  EXPECT_NO_THROW(adamw::rounding_stream(1, 0xFFFFFFFF));
  EXPECT_THROW(adamw::rounding_stream(1, 0x100000000), SpecError);
  EXPECT_THROW(adamw::rounding_stream(1, 0), SpecError);
}

TEST(AdamwRoundingSpec, AreTheStatedWordsOfTheStatedBlock) {
  const auto words = random::Stream(7, random::Site::rounding, 3).block(5);
  const auto even = bits_of(7, 3, 10), odd = bits_of(7, 3, 11);
  EXPECT_EQ(even.parameter | std::uint32_t{even.moment1} << 16, words[0]);
  EXPECT_EQ(even.moment2, words[1] & 0xFFFF);
  EXPECT_EQ(odd.parameter | std::uint32_t{odd.moment1} << 16, words[2]);
  EXPECT_EQ(odd.moment2, words[3] & 0xFFFF);
}

TEST(AdamwRoundingSpec, EverySeedStepAndEntryHasItsOwn) {
  std::set<std::tuple<int, int, int>> seen;
  int asked = 0;
  for (std::uint64_t seed : {1, 2})
    for (std::int64_t step : {1, 2, 1000})
      for (std::uint64_t entry : {0ull, 1ull, 2ull, 3ull, 1ull << 33}) {
        const auto bits = bits_of(seed, step, entry);
        seen.insert({bits.parameter, bits.moment1, bits.moment2});
        ++asked;
      }
  EXPECT_EQ(seen.size(), static_cast<std::size_t>(asked));
}

}  // namespace
}  // namespace assay::spec::adamw_rounding_test
