// labels: parity property
#include "impl/ops/swiglu.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "reference/ops/swiglu.hpp"
#include "tests/support/tensors.hpp"

namespace assay::impl {
namespace {

using reference::Index;
using reference::Tensor;
using tests::exact;
using tests::values;

double sigmoid(double gate) { return 1 / (1 + std::exp(-gate)); }

/// spec/ops/swiglu.md, with exp counted as 2 roundings (impl/ops/cpu_math.hpp). Where sigma leaves the range
/// of the arithmetic it is 0 to within the least normal number.
struct Bounds {
  tests::Rounding rounding;
  Tensor<double> gate, up, dy;

  double lost(Index i, double factor) const { return rounding.smallest * factor * (1 + std::abs(gate[i])); }
  tests::Allowed y(const Tensor<double>& y) const {
    return tests::each(y.size(), [&](Index i) {
      return rounding.stored(y[i], rounding.gamma(6) * std::abs(y[i]) + lost(i, std::abs(up[i])));
    });
  }
  tests::Allowed dup(const Tensor<double>& dup) const {
    return tests::each(dup.size(), [&](Index i) {
      return rounding.stored(dup[i], rounding.gamma(6) * std::abs(dup[i]) + lost(i, std::abs(dy[i])));
    });
  }
  tests::Allowed dgate(const Tensor<double>& dgate) const {
    return tests::each(dgate.size(), [&](Index i) {
      const double sigma = sigmoid(gate[i]), size = std::abs(dy[i] * up[i]);
      const double terms = size * sigma * (1 + std::abs(gate[i]) * (1 + sigma));
      return rounding.stored(dgate[i], rounding.gamma(12) * terms + lost(i, size));
    });
  }
};

/// gate | up as the trainer holds them.
at::Tensor joined(const at::Tensor& gate, const at::Tensor& up) { return at::cat({gate, up}, 1); }

void matches(at::ScalarType type, const at::Tensor& gate, const at::Tensor& up, const at::Tensor& dy) {
  const Index F = gate.size(1);
  const Bounds bounds{tests::rounding_of(type), exact(gate), exact(up), exact(dy)};
  const auto y = reference::swiglu::forward(bounds.gate, bounds.up);
  const auto gradient = reference::swiglu::backward(bounds.dy, bounds.gate, bounds.up);
  for (bool generic : {false, true}) {
    RC_LOG() << (generic ? "aten" : "cpu") << "\n";
    const at::Tensor in = joined(gate, up);
    ASSAY_RC_CLOSE(values(generic ? swiglu::aten::forward(in) : swiglu::forward(in)), values(y), bounds.y(y));
    const at::Tensor out = generic ? swiglu::aten::backward(dy, in) : swiglu::backward(dy, in);
    RC_ASSERT(out.is_same(in));
    ASSAY_RC_CLOSE(values(out.narrow(1, 0, F)), values(gradient.dgate), bounds.dgate(gradient.dgate));
    ASSAY_RC_CLOSE(values(out.narrow(1, F, F)), values(gradient.dup), bounds.dup(gradient.dup));
  }
}

RC_GTEST_PROP(SwigluImpl, MatchesReference, ()) {
  const auto type = tests::draw_dtype();
  const Index N = *rc::gen::inRange<Index>(1, 8), F = *rc::gen::inRange<Index>(1, 40);
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  const double scale =
      *rc::gen::element(1.0, 10.0, 100.0);  // of the gate: linear, saturated, beyond exp in fp32
  matches(type, tests::normal({N, F}, seed, type, scale), tests::normal({N, F}, seed + 1, type),
          tests::normal({N, F}, seed + 2, type));
}

RC_GTEST_PROP(SwigluImpl, AgreesWithAutograd, ()) {
  const Index N = *rc::gen::inRange<Index>(1, 8), F = *rc::gen::inRange<Index>(1, 40);
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  const at::Tensor gate = tests::leaf(tests::normal({N, F}, seed, at::kDouble)),
                   up = tests::leaf(tests::normal({N, F}, seed + 1, at::kDouble));
  const at::Tensor dy = tests::normal({N, F}, seed + 2, at::kDouble);
  const auto theirs = tests::autograd(at::silu(gate) * up, dy, {gate, up});
  const at::Tensor ours = swiglu::backward(dy, joined(gate.detach(), up.detach()));
  const Bounds bounds{tests::rounding_of(at::kDouble), exact(gate), exact(up), exact(dy)};
  ASSAY_RC_CLOSE(values(ours.narrow(1, 0, F)), values(theirs[0]), bounds.dgate(exact(theirs[0])));
  ASSAY_RC_CLOSE(values(ours.narrow(1, F, F)), values(theirs[1]), bounds.dup(exact(theirs[1])));
}

TEST(SwigluImpl, SameBitsOnAnyNumberOfThreads) {
  const at::Tensor in = tests::normal({500, 130}, 1, at::kFloat),
                   dy = tests::normal({500, 65}, 2, at::kFloat);
  EXPECT_TRUE(tests::repeatable([&] {
    return std::vector{swiglu::forward(in), swiglu::backward(dy, in.clone())};
  }));
}

TEST(SwigluImpl, C1RejectsHalvesOrUpstreamOfAnotherSize) {
  EXPECT_EQ(tests::refusal([] { swiglu::forward(at::ones({2, 5})); }), "swiglu_c1");
  EXPECT_EQ(tests::refusal([] { swiglu::backward(at::ones({2, 2}), at::ones({2, 6})); }), "swiglu_c1");
  EXPECT_EQ(tests::refusal([] { swiglu::backward(at::ones({1, 3}), at::ones({2, 6})); }), "swiglu_c1");
}

TEST(SwigluImpl, C2RejectsEmptyRows) {
  EXPECT_EQ(tests::refusal([] { swiglu::forward(at::ones({2, 0})); }), "swiglu_c2");
}

}  // namespace
}  // namespace assay::impl
