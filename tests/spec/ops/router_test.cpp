// labels: unit
#include "spec/ops/router/router.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "spec/flops/exact.hpp"
#include "tests/support/label_of.hpp"

namespace assay::spec::router_test {
namespace {

const router::Shape shape{.N = 3, .D = 5};
const Experts softmax{.count = 8, .active = 2, .width = 1};
const Experts sigmoid{.count = 8,
                      .active = 2,
                      .width = 1,
                      .router_bias = true,
                      .scoring = Scoring::sigmoid,
                      .groups = 4,
                      .active_groups = 2,
                      .scaling_factor = 2.5};

TEST(RouterSpec, C1RejectsAnotherWeight) {
  EXPECT_NO_THROW(router::check(shape, softmax, 8, 5, 0));
  EXPECT_EQ(tests::label_of([] { router::check(shape, softmax, 7, 5, 0); }), "router_c1");
  EXPECT_EQ(tests::label_of([] { router::check(shape, softmax, 8, 4, 0); }), "router_c1");
}

TEST(RouterSpec, C2RejectsImpossibleRowsAndExperts) {
  EXPECT_NO_THROW(router::check({.N = 0, .D = 1}, softmax, 8, 1, 0));
  EXPECT_EQ(tests::label_of([] { router::check({.N = -1, .D = 5}, softmax, 8, 5, 0); }), "router_c2");
  EXPECT_EQ(tests::label_of([] { router::check({.N = 3, .D = 0}, softmax, 8, 0, 0); }), "router_c2");
  const auto refuse = [](const std::function<void(Experts&)>& change) {
    Experts e = sigmoid;
    change(e);
    EXPECT_EQ(tests::label_of([&] { router::check(shape, e, e.count, 5, e.count); }), "router_c2");
  };
  EXPECT_NO_THROW(router::check(shape, sigmoid, 8, 5, 8));
  refuse([](Experts& e) { e.count = 0; });
  refuse([](Experts& e) { e.active = 0; });
  refuse([](Experts& e) { e.active = 5; });  // two groups of two
  refuse([](Experts& e) { e.groups = 3; });
  refuse([](Experts& e) { e.groups = 0; });
  refuse([](Experts& e) { e.groups = 8; });
  refuse([](Experts& e) { e.active_groups = 5; });
  refuse([](Experts& e) { e.active_groups = 0; });
  refuse([](Experts& e) { e.scaling_factor = 0; });
  refuse([](Experts& e) { e.scaling_factor = std::numeric_limits<double>::infinity(); });
}

TEST(RouterSpec, C3RejectsABiasTooManyAndOneTooFew) {
  EXPECT_EQ(tests::label_of([] { router::check(shape, softmax, 8, 5, 8); }), "router_c3");
  EXPECT_EQ(tests::label_of([] { router::check(shape, sigmoid, 8, 5, 0); }), "router_c3");
}

TEST(RouterSpec, C4RejectsUpstreamsOfAnotherSize) {
  EXPECT_NO_THROW(router::check_upstream(shape, softmax, 6, 0, 0));
  EXPECT_NO_THROW(router::check_upstream(shape, softmax, 6, 24, 24));
  EXPECT_EQ(tests::label_of([] { router::check_upstream(shape, softmax, 3, 0, 0); }), "router_c4");
  EXPECT_EQ(tests::label_of([] { router::check_upstream(shape, softmax, 6, 8, 0); }), "router_c4");
  EXPECT_EQ(tests::label_of([] { router::check_upstream(shape, softmax, 6, 24, 23); }), "router_c4");
}

TEST(RouterSpec, CountsByHand) {
  // Of a row: softmax 32, renormalised 5, scaling 2; sigmoid 24, bias 8, groups 4, renormalised 5, scaling 2.
  EXPECT_EQ(router::forward_flops(shape, softmax).vector, Count(3 * 39));
  EXPECT_EQ(router::forward_flops(shape, sigmoid).vector, Count(3 * 43));
  // Scaling and adding 4, renormalised 8, and softmax 32 or sigmoid 24; with both upstreams 16, or 8 + 57.
  EXPECT_EQ(router::backward_flops(shape, softmax, {}).vector, Count(3 * 44));
  EXPECT_EQ(router::backward_flops(shape, sigmoid, {}).vector, Count(3 * 36));
  const router::Auxiliary both{.probabilities = true, .logits = true};
  EXPECT_EQ(router::backward_flops(shape, softmax, both).vector, Count(3 * 60));
  EXPECT_EQ(router::backward_flops(shape, sigmoid, both).vector, Count(3 * 101));
}

TEST(RouterSpec, ItsMatmulsAreTheRouterOfTheModel) {
  const ModelSpec model = find_model("deepseek-v3");
  const FlopBreakdown flops = exact_flops(model, 64);
  const router::Shape rows{.N = 64, .D = model.width};
  EXPECT_EQ(model.sparse_layers() * router::forward_flops(rows, *model.experts).matmul,
            flops.at(FlopComponent::router, Pass::forward));
  EXPECT_EQ(model.sparse_layers() * router::backward_flops(rows, *model.experts, {}).matmul,
            flops.at(FlopComponent::router, Pass::backward));
}

TEST(RouterSpec, CountsBytesOfEveryTensorOnce) {
  // 15 of x and 40 of weight in bf16; 24 logits and 6 weights in fp32, 6 ids of 4 bytes; a bias of 8.
  EXPECT_EQ(router::forward_bytes(shape, softmax, 2, 4, 4), Count(110 + 120 + 24));
  EXPECT_EQ(router::forward_bytes(shape, sigmoid, 2, 4, 4), Count(110 + 120 + 24 + 32));
  // x, dx and weight; logits, weights and their gradient; ids; 40 of dweight in fp32.
  EXPECT_EQ(router::backward_bytes(shape, softmax, {}, 2, 4, 4, 4), Count(140 + 144 + 24 + 160));
  EXPECT_EQ(router::backward_bytes(shape, softmax, {.probabilities = true, .logits = true}, 2, 4, 4, 4),
            Count(140 + 144 + 24 + 160 + 192));
}

}  // namespace
}  // namespace assay::spec::router_test
