// labels: unit property
#include "reference/ops/shared_expert.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "reference/counted.hpp"
#include "spec/ops/shared_expert/shared_expert.hpp"
#include "spec/tolerance.hpp"
#include "tests/support/compare.hpp"
#include "tests/support/draw.hpp"
#include "tests/support/gradient_check.hpp"

// Golden values: those of whole DeepSeek-V3 models, golden/models.

namespace assay::reference::shared_expert_test {
namespace {

using shared_expert::Activation;
using shared_expert::Weights;
using tests::Allowed;
using tests::values;

TEST(SharedExpertReference, GivesTheSpecExample) {
  const double ln3 = std::log(3.0);
  const Weights<double> weights{Tensor<double>({2, 1}, {ln3, 4}), Tensor<double>({1, 1}, {2})};
  const auto out = shared_expert::forward(Tensor<double>({1, 1}, {1}), Tensor<double>({1, 1}, {5}), weights,
                                          Activation::silu);
  ASSAY_EXPECT_CLOSE(values(out.y), (tests::Values{{1, 1}, {5 + 6 * ln3}}),
                     Allowed::relative(gamma(12, unit_roundoff(Dtype::f64))));
}

TEST(SharedExpertReference, ConstraintsAreHeld) {
  const auto x = tests::normal({3, 4}, 1);
  const Weights<double> weights{tests::normal({10, 4}, 2), tests::normal({4, 5}, 3)};
  EXPECT_NO_THROW(shared_expert::forward(x, x, weights, Activation::silu));
  EXPECT_THROW(shared_expert::forward(x, tests::normal({2, 4}, 1), weights, Activation::silu), SpecError);
  EXPECT_THROW(shared_expert::forward(x, x, Weights<double>{weights.gate_up, tests::normal({4, 6}, 3)},
                                      Activation::silu),
               SpecError);
}

RC_GTEST_PROP(SharedExpertReference, BackwardMatchesCentralDifference, (std::uint64_t seed)) {
  // Of a single entry the largest may be as small as the error of the difference.
  const Index N = *rc::gen::inRange<Index>(2, 5), D = *rc::gen::inRange<Index>(2, 5),
              S = *rc::gen::inRange<Index>(2, 5);
  const Activation activation = *rc::gen::element(Activation::silu, Activation::gelu_tanh);
  const auto x = tests::normal({N, D}, seed), routed = tests::normal({N, D}, seed + 1),
             dy = tests::normal({N, D}, seed + 2);
  const Weights<double> weights{tests::normal({2 * S, D}, seed + 3), tests::normal({D, S}, seed + 4)};
  const auto loss = [&](const Tensor<double>& at, const Weights<double>& w) {
    return tests::dot(dy, shared_expert::forward(at, routed, w, activation).y);
  };
  const auto saved = shared_expert::forward(x, routed, weights, activation);
  const auto gradient = shared_expert::backward(dy, saved, x, weights, activation);
  ASSAY_RC_CLOSE(values(gradient.dx),
                 tests::central_difference([&](const auto& at) { return loss(at, weights); }, x),
                 Allowed::relative(1e-7));
  ASSAY_RC_CLOSE(values(gradient.dgate_up),
                 tests::central_difference(
                     [&](const auto& at) {
                       return loss(x, {at, weights.down});
                     },
                     weights.gate_up),
                 Allowed::relative(1e-7));
  ASSAY_RC_CLOSE(values(gradient.ddown),
                 tests::central_difference(
                     [&](const auto& at) {
                       return loss(x, {weights.gate_up, at});
                     },
                     weights.down),
                 Allowed::relative(1e-7));
}

RC_GTEST_PROP(SharedExpertReference, ExecutesExactlyTheFlopsOfTheSpec, (std::uint64_t seed)) {
  const Index N = *rc::gen::inRange<Index>(0, 4), D = *rc::gen::inRange<Index>(1, 4),
              S = *rc::gen::inRange<Index>(1, 4);
  const Activation activation = *rc::gen::element(Activation::silu, Activation::gelu_tanh);
  const auto x = tests::counted(tests::normal({N, D}, seed));
  const Weights<Counted> weights{tests::counted(tests::normal({2 * S, D}, seed)),
                                 tests::counted(tests::normal({D, S}, seed))};
  const spec::shared_expert::Shape shape{.N = N, .D = D, .S = S};
  shared_expert::Forward<Counted> saved;
  const auto total = [](const Flops& flops) { return flops.matmul + flops.vector; };
  RC_ASSERT(tests::operations_of([&] { saved = shared_expert::forward(x, x, weights, activation); }) ==
            total(spec::shared_expert::forward_flops(shape, activation)));
  RC_ASSERT(tests::operations_of([&] { shared_expert::backward(x, saved, x, weights, activation); }) ==
            total(spec::shared_expert::backward_flops(shape, activation)));
}

}  // namespace
}  // namespace assay::reference::shared_expert_test
