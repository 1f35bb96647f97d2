// labels: unit
// A model with one dense and one sparse layer, counted by hand on one token.
#include <gtest/gtest.h>

#include "spec/flops/exact.hpp"

namespace assay::spec::experts_test {
namespace {

/// Layer 0 has an MLP of 6; layer 1 has 4 experts of 3, of which a token visits 2, and a shared one of 5.
ModelSpec one_dense_one_sparse() {
  ModelSpec model;
  model.name = "hand", model.family = Family::mixtral;
  model.vocab = 10, model.width = 4, model.layers = 2, model.heads = 2, model.kv_heads = 1,
  model.head_dim = 2;
  model.ffn = 6, model.context = 8;
  model.experts = Experts{.count = 4, .active = 2, .width = 3, .shared_width = 5, .first_dense = 1};
  return model;
}

TEST(ExpertsFlops, AreThoseOfTheLayersAndExpertsThatATokenMeets) {
  const FlopBreakdown flops = exact_flops(one_dense_one_sparse(), 1);
  const auto forward = [&](FlopComponent component) { return flops.at(component, Pass::forward).to_int64(); };
  EXPECT_EQ(forward(FlopComponent::qkv), 2 * 2 * (4 * (2 + 1 + 1) * 2));
  EXPECT_EQ(forward(FlopComponent::gate_up), 2 * (2 * 4 * 6)) << "the dense layer's alone";
  EXPECT_EQ(forward(FlopComponent::down), 2 * (4 * 6));
  EXPECT_EQ(forward(FlopComponent::router), 2 * (4 * 4)) << "every expert is scored";
  EXPECT_EQ(forward(FlopComponent::routed_experts), 2 * (2 * 3 * 4 * 3)) << "two of the four compute";
  EXPECT_EQ(forward(FlopComponent::shared_experts), 2 * (3 * 4 * 5));
}

TEST(ExpertsFlops, ParametersAreAllExpertsAndActiveOnesTheVisited) {
  const ModelSpec model = one_dense_one_sparse();
  const std::int64_t attention = 4 * (2 + 1 + 1) * 2 + 2 * 2 * 4, norms = 2 * 4, expert = 3 * 4 * 3;
  const std::int64_t always = 2 * (10 * 4) + 4 + 2 * (attention + norms) + 3 * 4 * 6 + 4 * 4 + 3 * 4 * 5;
  EXPECT_EQ(parameter_count(model).to_int64(), always + 4 * expert);
  EXPECT_EQ(active_parameter_count(model).to_int64(), always + 2 * expert);
}

}  // namespace
}  // namespace assay::spec::experts_test
