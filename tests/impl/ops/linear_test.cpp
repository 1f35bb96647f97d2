// labels: parity property
#include "impl/ops/linear.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "reference/ops/linear.hpp"
#include "tests/support/tensors.hpp"

namespace assay::impl {
namespace {

using reference::Index;
using reference::Tensor;
using tests::exact;
using tests::values;

/// |x| |W|^T: what T2 bounds multiply.
Tensor<double> sizes(const Tensor<double>& x, const Tensor<double>& weight) {
  Tensor<double> a = x, b = weight;
  a.flat() = a.flat().abs();
  b.flat() = b.flat().abs();
  return reference::linear::forward(a, b);
}

struct Drawn {
  at::ScalarType type = tests::draw_dtype();
  Index N = *rc::gen::inRange<Index>(1, 40), in = *rc::gen::inRange<Index>(1, 40),
        out = *rc::gen::inRange<Index>(1, 40);
  std::uint64_t seed = *rc::gen::arbitrary<std::uint64_t>();
  at::Tensor x = tests::normal({N, in}, seed, type), weight = tests::normal({out, in}, seed + 1, type);
  at::Tensor dy = tests::normal({N, out}, seed + 2, type);
  tests::Rounding rounding = tests::rounding_of(type);

  tests::Allowed allowed(const Tensor<double>& result, const Tensor<double>& terms, Index count) const {
    return tests::each(result.size(), [&](Index i) {
      return rounding.stored(result[i], rounding.gamma(static_cast<double>(count + 1)) * terms[i]);
    });
  }
};

RC_GTEST_PROP(LinearImpl, ForwardMatchesReference, ()) {
  const Drawn d;
  const auto y = reference::linear::forward(exact(d.x), exact(d.weight));
  const auto terms = sizes(exact(d.x), exact(d.weight));
  ASSAY_RC_CLOSE(values(linear::forward(d.x, d.weight)), values(y), d.allowed(y, terms, d.in));

  const at::Tensor residual = tests::normal({d.N, d.out}, d.seed + 3, d.type);
  auto sum = y, sum_terms = terms;
  sum.flat() += exact(residual).flat();
  sum_terms.flat() += exact(residual).flat().abs();
  ASSAY_RC_CLOSE(values(linear::forward_residual(residual, d.x, d.weight)), values(sum),
                 d.allowed(sum, sum_terms, d.in + 1));
}

RC_GTEST_PROP(LinearImpl, BackwardMatchesReference, ()) {
  const Drawn d;
  const auto gradient = reference::linear::backward(exact(d.dy), exact(d.x), exact(d.weight));
  auto dy = exact(d.dy), x = exact(d.x), weight = exact(d.weight);
  for (auto* each : {&dy, &x, &weight}) each->flat() = each->flat().abs();
  const auto terms = reference::linear::backward(dy, x, weight);
  ASSAY_RC_CLOSE(values(linear::backward_input(d.dy, d.weight)), values(gradient.dx),
                 d.allowed(gradient.dx, terms.dx, d.out));

  // Added to what is there, in the gradient's dtype: nothing is stored in bf16.
  const at::Tensor before = tests::normal({d.out, d.in}, d.seed + 3, tests::math_of(d.type)),
                   dweight = before.clone();
  linear::backward_weight(d.dy, d.x, dweight);
  auto expected = gradient.dweight;
  expected.flat() += exact(before).flat();
  ASSAY_RC_CLOSE(values(dweight), values(expected), tests::each(expected.size(), [&](Index i) {
                   return d.rounding.gamma(static_cast<double>(d.N + 1)) *
                          (terms.dweight[i] + std::abs(exact(before)[i]));
                 }));
}

TEST(LinearImpl, SameBitsTwice) {
  const at::Tensor x = tests::normal({300, 70}, 1, at::kFloat),
                   weight = tests::normal({90, 70}, 2, at::kFloat);
  const auto all = [&] {
    const at::Tensor y = linear::forward(x, weight), dweight = at::zeros_like(weight);
    linear::backward_weight(y, x, dweight);
    return std::vector{y, linear::backward_input(y, weight), dweight};
  };
  const auto first = all(), second = all();
  for (std::size_t i = 0; i < first.size(); ++i) EXPECT_TRUE(tests::same_bits(first[i], second[i])) << i;
}

TEST(LinearImpl, C1RejectsInnerExtentsThatDiffer) {
  EXPECT_EQ(tests::refusal([] { linear::forward(at::ones({2, 3}), at::ones({5, 4})); }), "linear_c1");
  EXPECT_EQ(tests::refusal([] {
              linear::backward_weight(at::ones({2, 5}), at::ones({2, 3}), at::ones({5, 4}));
            }),
            "linear_c1");
}

TEST(LinearImpl, C2RejectsEmptyRows) {
  EXPECT_EQ(tests::refusal([] { linear::forward(at::ones({2, 0}), at::ones({5, 0})); }), "linear_c2");
}

TEST(LinearImpl, C3RejectsAnUpstreamOfAnotherSize) {
  EXPECT_EQ(tests::refusal([] { linear::backward_input(at::ones({2, 4}), at::ones({5, 3})); }), "linear_c3");
  EXPECT_EQ(tests::refusal([] {
              linear::backward_weight(at::ones({3, 5}), at::ones({2, 4}), at::ones({5, 4}));
            }),
            "linear_c3");
  EXPECT_EQ(tests::refusal([] {
              linear::forward_residual(at::ones({1, 5}), at::ones({2, 3}), at::ones({5, 3}));
            }),
            "linear_c3");
}

}  // namespace
}  // namespace assay::impl
