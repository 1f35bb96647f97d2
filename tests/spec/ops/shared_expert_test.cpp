// labels: unit
#include "spec/ops/shared_expert/shared_expert.hpp"

#include <gtest/gtest.h>

#include "spec/flops/exact.hpp"
#include "tests/support/label_of.hpp"

namespace assay::spec::shared_expert_test {
namespace {

const shared_expert::Shape shape{.N = 3, .D = 4, .S = 5};

TEST(SharedExpertSpec, C1RejectsOtherMatrices) {
  EXPECT_NO_THROW(shared_expert::check(shape, {10, 4}, 4, 12));
  EXPECT_EQ(tests::label_of([] { shared_expert::check(shape, {9, 4}, 4, 12); }), "shared_expert_c1");
  EXPECT_EQ(tests::label_of([] { shared_expert::check(shape, {10, 5}, 4, 12); }), "shared_expert_c1");
  EXPECT_EQ(tests::label_of([] { shared_expert::check(shape, {10, 4}, 5, 12); }), "shared_expert_c1");
  EXPECT_EQ(tests::label_of([] {
              shared_expert::check({.N = 3, .D = 4, .S = 0}, {0, 4}, 4, 12);
            }),
            "shared_expert_c1");
}

TEST(SharedExpertSpec, C2RejectsAnotherSumOfRoutedExperts) {
  EXPECT_EQ(tests::label_of([] { shared_expert::check(shape, {10, 4}, 4, 11); }), "shared_expert_c2");
}

TEST(SharedExpertSpec, ItsMatmulsAreTheSharedExpertsOfTheModel) {
  const ModelSpec model = find_model("deepseek-v3");
  const FlopBreakdown flops = exact_flops(model, 64);
  const shared_expert::Shape rows{.N = 64, .D = model.width, .S = model.experts->shared_width};
  EXPECT_EQ(model.sparse_layers() * shared_expert::forward_flops(rows, swiglu::Activation::silu).matmul,
            flops.at(FlopComponent::shared_experts, Pass::forward));
  EXPECT_EQ(model.sparse_layers() * shared_expert::backward_flops(rows, swiglu::Activation::silu).matmul,
            flops.at(FlopComponent::shared_experts, Pass::backward));
}

}  // namespace
}  // namespace assay::spec::shared_expert_test
