#pragma once
// The comparator of every numeric test. It prints the largest error as a share of the allowed one, and
// refuses to believe a comparison that could not have failed.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

namespace assay::tests {

/// Values under comparison, whatever library they came from.
struct Values {
  std::vector<std::int64_t> shape;
  std::vector<double> data;  ///< row-major
};

/// How much element i may differ: absolute[i] if given, else `relative_to_largest` * max |expected|.
struct Allowed {
  std::vector<double> absolute;
  double relative_to_largest = 0;

  static Allowed relative(double share_of_largest) { return {{}, share_of_largest}; }
  static Allowed elementwise(std::vector<double> bounds) { return {std::move(bounds), 0}; }
  static Allowed exact() { return {{}, 0}; }
};

/// Fails on: different shapes; a data size that is not the shape's; NaN or infinity on either side (also when
/// both have it); a bound that is NaN, negative or infinite; any |actual - expected| above its bound; a
/// comparison of more than 8 elements where over 7/8 of the expected values are exactly zero ("mostly zero"),
/// unless `zeros_expected`. On success the message holds the largest share of the allowance used.
testing::AssertionResult close(const Values& actual, const Values& expected, const Allowed& allowed,
                               bool zeros_expected = false);

/// The largest |actual - expected| / allowed (0/0 counts as 0, x/0 as infinity), for reports and RapidCheck.
double largest_share(const Values& actual, const Values& expected, const Allowed& allowed);

}  // namespace assay::tests

/// Compares and reports the share of the bound used as a GoogleTest property of the test.
#define ASSAY_EXPECT_CLOSE(actual, expected, allowed) \
  EXPECT_TRUE(::assay::tests::close(actual, expected, allowed))
/// The same inside a RapidCheck property.
#define ASSAY_RC_CLOSE(actual, expected, allowed)                               \
  do {                                                                          \
    const auto assay_result = ::assay::tests::close(actual, expected, allowed); \
    if (!assay_result) RC_FAIL(std::string(assay_result.message()));            \
  } while (false)
