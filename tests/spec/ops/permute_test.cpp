// labels: unit
#include "spec/ops/permute/permute.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "tests/support/label_of.hpp"

namespace assay::spec::permute_test {
namespace {

const permute::Shape shape{.N = 2, .A = 2, .X = 3};
using Ids = std::vector<std::int64_t>;

std::string refusal(const permute::Shape& s, const Ids& chosen, std::optional<double> factor = std::nullopt) {
  return tests::label_of([&] { permute::check(s, chosen, factor); });
}

TEST(PermuteSpec, C1RejectsImpossibleExtents) {
  EXPECT_NO_THROW(permute::check({.N = 0, .A = 1, .X = 1}, Ids{}, std::nullopt));
  EXPECT_EQ(refusal({.N = -1, .A = 1, .X = 1}, {}), "permute_c1");
  EXPECT_EQ(refusal({.N = 1, .A = 0, .X = 1}, {}), "permute_c1");
  EXPECT_EQ(refusal({.N = 1, .A = 2, .X = 1}, {0, 0}), "permute_c1");
  EXPECT_EQ(tests::label_of([] { permute::check_entries("x", 0, 0, 0); }), "permute_c1");
}

TEST(PermuteSpec, C2RejectsOtherChoices) {
  EXPECT_NO_THROW(permute::check(shape, Ids{2, 0, 0, 2}, 1.0));
  EXPECT_EQ(refusal(shape, {2, 0, 0}), "permute_c2");
  EXPECT_EQ(refusal(shape, {2, 0, 0, 3}), "permute_c2");
  EXPECT_EQ(refusal(shape, {2, 0, -1, 2}), "permute_c2");
}

TEST(PermuteSpec, C3RejectsACapacityFactorThatIsNotPositive) {
  for (const double factor : {0.0, -1.0, std::numeric_limits<double>::infinity()}) {
    EXPECT_EQ(refusal(shape, {2, 0, 0, 2}, factor), "permute_c3");
    EXPECT_EQ(tests::label_of([&] { permute::capacity(shape, factor); }), "permute_c3");
  }
}

TEST(PermuteSpec, C4RejectsOtherEntries) {
  EXPECT_NO_THROW(permute::check_entries("x", 6, 6, 3));
  EXPECT_EQ(tests::label_of([] { permute::check_entries("x", 5, 6, 3); }), "permute_c4");
}

TEST(PermuteSpec, C5RejectsGroupsThatDoNotDivideTheTokens) {
  EXPECT_NO_THROW(permute::check_groups(6, 3));
  EXPECT_NO_THROW(permute::check_groups(0, 2));
  EXPECT_EQ(tests::label_of([] { permute::check_groups(6, 4); }), "permute_c5");
  EXPECT_EQ(tests::label_of([] { permute::check_groups(6, 0); }), "permute_c5");
}

TEST(PermuteSpec, CapacityRoundsUpAndEndsAtTheTokens) {
  EXPECT_EQ(permute::capacity(shape, 0.75), 1);   // 0.75 * 4 / 3
  EXPECT_EQ(permute::capacity(shape, 1), 2);      // 4 / 3
  EXPECT_EQ(permute::capacity(shape, 1e300), 2);  // no expert has more rows than there are tokens
  EXPECT_EQ(permute::capacity({.N = 4096, .A = 8, .X = 64}, 1.25), 640);
  EXPECT_EQ(permute::capacity({.N = 0, .A = 1, .X = 4}, 1), 0);
}

TEST(PermuteSpec, CountsFlopsAndBytes) {
  EXPECT_EQ(permute::backward_flops(4, 3).vector, Count(12));
  EXPECT_EQ(permute::unpermute_forward_flops(4, 3).vector, Count(24));
  EXPECT_EQ(permute::unpermute_backward_flops(4, 3).vector, Count(36));
  // 2 tokens and 4 rows of 3 entries in bf16, 4 weights in fp32.
  EXPECT_EQ(permute::forward_bytes(2, 4, 3, 2), Count(36));
  EXPECT_EQ(permute::unpermute_forward_bytes(shape, 4, 3, 2, 4), Count(36 + 16));
  EXPECT_EQ(permute::unpermute_backward_bytes(shape, 4, 3, 2, 4), Count(60 + 32));
}

}  // namespace
}  // namespace assay::spec::permute_test
