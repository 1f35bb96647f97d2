// labels: golden
#include <gtest/gtest.h>

#include "spec/random/philox.hpp"
#include "tests/support/golden.hpp"

namespace assay::spec::random::philox_golden_test {
namespace {

TEST(PhiloxGolden, BlocksAreThoseOfRandom123) {
  const auto golden = tests::load_golden("ops/init/philox_known_answers.json");
  const auto counters = golden.ids("counter"), keys = golden.ids("key"), expected = golden.ids("expected");
  ASSERT_EQ(expected.size(), 12u);
  for (std::size_t row = 0; row < 3; ++row) {
    const auto word = [row](const auto& values, std::size_t width, std::size_t i) {
      return static_cast<std::uint32_t>(values.at(row * width + i));
    };
    const auto block =
        philox({word(counters, 4, 0), word(counters, 4, 1), word(counters, 4, 2), word(counters, 4, 3)},
               {word(keys, 2, 0), word(keys, 2, 1)});
    for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(block[i], word(expected, 4, i)) << row << ", " << i;
  }
}

TEST(PhiloxGolden, NormalsAreBoxMullerToDoubleRounding) {
  const auto golden = tests::load_golden("ops/init/normal.json");
  const auto seeds = golden.ids("seed"), streams = golden.ids("stream"), indices = golden.ids("index");
  tests::Values actual{golden.shape("normal"), {}}, expected = golden.tensor("normal");
  std::vector<double> bounds;
  for (std::size_t i = 0; i < seeds.size(); ++i) {
    const Stream stream(static_cast<std::uint64_t>(seeds[i]), Site::parameter,
                        static_cast<std::uint32_t>(streams[i]));
    actual.data.push_back(stream.normal(static_cast<std::uint64_t>(indices[i])));
    // The angle 2 pi u carries up to two roundings, pi * 2^-51 absolute, into a cosine times a radius
    // below 9.
    bounds.push_back(9 * 4 * 0x1p-51);
  }
  ASSAY_EXPECT_CLOSE(actual, expected, tests::Allowed::elementwise(bounds));
}

}  // namespace
}  // namespace assay::spec::random::philox_golden_test
