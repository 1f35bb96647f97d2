#pragma once
// linear against the reference, on any device.
#include <rapidcheck.h>

#include <limits>

#include "impl/ops/linear/linear.hpp"
#include "reference/ops/bias.hpp"
#include "reference/ops/linear.hpp"
#include "tests/support/tensors.hpp"

namespace assay::impl::parity {

using reference::Index;
using tests::exact;
using tests::values;

/// |x| |W|^T: what T2 bounds multiply.
inline reference::Tensor<double> linear_sizes(const reference::Tensor<double>& x,
                                              const reference::Tensor<double>& weight) {
  reference::Tensor<double> a = x, b = weight;
  a.flat() = a.flat().abs();
  b.flat() = b.flat().abs();
  return reference::linear::forward(a, b);
}

struct LinearDrawn {
  at::Device device;
  at::ScalarType type = tests::draw_dtype();
  Index N = tests::draw_extent(device, 40, 128), in = tests::draw_extent(device, 40, 128),
        out = tests::draw_extent(device, 40, 128);
  std::uint64_t seed = *rc::gen::arbitrary<std::uint64_t>();
  at::Tensor x = tests::normal({N, in}, seed, type), weight = tests::normal({out, in}, seed + 1, type);
  at::Tensor dy = tests::normal({N, out}, seed + 2, type);
  tests::Rounding rounding = tests::rounding_of(type);

  tests::Allowed allowed(const reference::Tensor<double>& result, const reference::Tensor<double>& terms,
                         Index count) const {
    return tests::each(result.size(), [&](Index i) {
      return rounding.stored(result[i], rounding.gamma(static_cast<double>(count + 1)) * terms[i]);
    });
  }
};

/// x W^T, alone, added to a residual, and with a bias, whose place in memory fits 16 bytes or not.
inline void linear_forward_matches_reference(at::Device device) {
  const LinearDrawn d{device};
  const auto y = reference::linear::forward(exact(d.x), exact(d.weight));
  const auto terms = linear_sizes(exact(d.x), exact(d.weight));
  ASSAY_RC_CLOSE(values(linear::forward(d.x.to(device), d.weight.to(device))), values(y),
                 d.allowed(y, terms, d.in));

  const at::Tensor residual = tests::normal({d.N, d.out}, d.seed + 3, d.type);
  auto sum = y, sum_terms = terms;
  sum.flat() += exact(residual).flat();
  sum_terms.flat() += exact(residual).flat().abs();
  ASSAY_RC_CLOSE(values(linear::forward_residual(residual.to(device), d.x.to(device), d.weight.to(device))),
                 values(sum), d.allowed(sum, sum_terms, d.in + 1));

  const at::Tensor longer = tests::normal({d.out + 1}, d.seed + 4, d.type);
  for (const Index begin : {0, 1}) {
    const at::Tensor bias = longer.narrow(0, begin, d.out);
    const auto biased = reference::bias::forward(y, exact(bias));
    auto size = exact(bias);
    size.flat() = size.flat().abs();
    ASSAY_RC_CLOSE(values(linear::forward(d.x.to(device), d.weight.to(device),
                                          longer.to(device).narrow(0, begin, d.out))),
                   values(biased), d.allowed(biased, reference::bias::forward(terms, size), d.in));
  }
}

/// Both gradients; that of the weight is added to what is there, or put there and nothing of it read.
inline void linear_backward_matches_reference(at::Device device) {
  const LinearDrawn d{device};
  const auto gradient = reference::linear::backward(exact(d.dy), exact(d.x), exact(d.weight));
  auto dy = exact(d.dy), x = exact(d.x), weight = exact(d.weight);
  for (auto* each : {&dy, &x, &weight}) each->flat() = each->flat().abs();
  const auto terms = reference::linear::backward(dy, x, weight);
  ASSAY_RC_CLOSE(values(linear::backward_input(d.dy.to(device), d.weight.to(device))), values(gradient.dx),
                 d.allowed(gradient.dx, terms.dx, d.out));

  // Added to what is there, in the gradient's dtype: nothing is stored in bf16.
  const at::Tensor before = tests::normal({d.out, d.in}, d.seed + 3, tests::math_of(d.type)),
                   dweight = before.to(device, /*non_blocking=*/false, /*copy=*/true);
  linear::backward_weight(d.dy.to(device), d.x.to(device), dweight);
  auto expected = gradient.dweight;
  expected.flat() += exact(before).flat();
  ASSAY_RC_CLOSE(values(dweight), values(expected), tests::each(expected.size(), [&](Index i) {
                   return d.rounding.gamma(static_cast<double>(d.N + 1)) *
                          (terms.dweight[i] + std::abs(exact(before)[i]));
                 }));

  const at::Tensor started = at::full_like(dweight, std::numeric_limits<double>::quiet_NaN()),
                   continued = at::zeros_like(dweight);
  linear::backward_weight(d.dy.to(device), d.x.to(device), started, linear::GradientSum::starts);
  linear::backward_weight(d.dy.to(device), d.x.to(device), continued);
  ASSAY_RC_CLOSE(values(started), values(gradient.dweight), tests::each(expected.size(), [&](Index i) {
                   return d.rounding.gamma(static_cast<double>(d.N + 1)) * terms.dweight[i];
                 }));
  RC_ASSERT(at::equal(started, continued));  // the bits of a sum with zeros
}

}  // namespace assay::impl::parity
