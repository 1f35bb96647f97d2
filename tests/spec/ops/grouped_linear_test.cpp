// labels: unit
#include "spec/ops/grouped_linear/grouped_linear.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "spec/flops/exact.hpp"
#include "tests/support/label_of.hpp"

namespace assay::spec::grouped_linear_test {
namespace {

using Ids = std::vector<std::int64_t>;
const grouped_linear::Shape shape{.R = 5, .in = 3, .out = 4, .X = 2};

std::string refusal(const grouped_linear::Shape& s, std::int64_t weight_in, const Ids& offsets) {
  return tests::label_of([&] { grouped_linear::check(s, weight_in, offsets); });
}

TEST(GroupedLinearSpec, C1RejectsWeightsOfOtherRows) {
  EXPECT_NO_THROW(grouped_linear::check(shape, 3, Ids{0, 2, 5}));
  EXPECT_EQ(refusal(shape, 4, {0, 2, 5}), "grouped_linear_c1");
}

TEST(GroupedLinearSpec, C2RejectsImpossibleExtents) {
  EXPECT_EQ(refusal({.R = -1, .in = 3, .out = 4, .X = 2}, 3, {0, 0, -1}), "grouped_linear_c2");
  EXPECT_EQ(refusal({.R = 5, .in = 0, .out = 4, .X = 2}, 0, {0, 2, 5}), "grouped_linear_c2");
  EXPECT_EQ(refusal({.R = 5, .in = 3, .out = 0, .X = 2}, 3, {0, 2, 5}), "grouped_linear_c2");
  EXPECT_EQ(refusal({.R = 0, .in = 3, .out = 4, .X = 0}, 3, {0}), "grouped_linear_c2");
}

TEST(GroupedLinearSpec, C3RejectsOffsetsThatAreNoRanges) {
  EXPECT_NO_THROW(grouped_linear::check(shape, 3, Ids{0, 0, 5}));
  EXPECT_NO_THROW(grouped_linear::check({.R = 0, .in = 3, .out = 4, .X = 2}, 3, Ids{0, 0, 0}));
  for (const Ids& offsets : {Ids{}, Ids{0, 5}, Ids{0, 2, 4}, Ids{1, 2, 5}, Ids{0, 6, 5}, Ids{0, 2, 5, 5}})
    EXPECT_EQ(refusal(shape, 3, offsets), "grouped_linear_c3");
}

TEST(GroupedLinearSpec, C4RejectsAnotherUpstream) {
  EXPECT_NO_THROW(grouped_linear::check_upstream(shape, 20));
  EXPECT_EQ(tests::label_of([] { grouped_linear::check_upstream(shape, 19); }), "grouped_linear_c4");
}

TEST(GroupedLinearSpec, GateUpAndDownAreTheRoutedExpertsOfTheModel) {
  const ModelSpec model = find_model("qwen3-30b-a3b");
  const Experts& e = *model.experts;
  const std::int64_t N = 64, R = N * e.active;
  const grouped_linear::Shape gate_up{.R = R, .in = model.width, .out = 2 * e.width, .X = e.count},
      down{.R = R, .in = e.width, .out = model.width, .X = e.count};
  const FlopBreakdown flops = exact_flops(model, N);
  EXPECT_EQ(model.sparse_layers() *
                (grouped_linear::forward_flops(gate_up).matmul + grouped_linear::forward_flops(down).matmul),
            flops.at(FlopComponent::routed_experts, Pass::forward));
  EXPECT_EQ(model.sparse_layers() * (grouped_linear::backward_flops(gate_up).matmul +
                                     grouped_linear::backward_flops(down).matmul),
            flops.at(FlopComponent::routed_experts, Pass::backward));
}

TEST(GroupedLinearSpec, CountsBytesOfTheExpertsThatHaveRows) {
  // x 15, weights of one expert 12, y 20 in bf16; backward also dx, and dweights of both experts in fp32.
  EXPECT_EQ(grouped_linear::forward_bytes(shape, 1, 2), Count(94));
  EXPECT_EQ(grouped_linear::backward_bytes(shape, 1, 2, 4), Count(124 + 96));
}

}  // namespace
}  // namespace assay::spec::grouped_linear_test
