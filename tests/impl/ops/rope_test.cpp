// labels: parity property
#include "impl/ops/rope.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "reference/ops/rope.hpp"
#include "spec/ops/rope.hpp"
#include "tests/support/tensors.hpp"

namespace assay::impl {
namespace {

using reference::Index;
using tests::exact;
using tests::values;

/// Table entry 1 rounding, product 1, sum 1; both sides form the angle in double, each with one rounding of
/// it.
tests::Allowed bound(tests::Rounding rounding, const reference::Tensor<double>& x,
                     const reference::Tensor<double>& y, const reference::Ids& positions,
                     const std::vector<double>& frequencies) {
  const Index E = x.extent(3), heads = x.extent(2);
  return tests::each(x.size(), [&](Index i) {
    const Index e = i % E, other = e < E / 2 ? i + E / 2 : i - E / 2;
    const double angle = static_cast<double>(positions[static_cast<std::size_t>(i / (E * heads))]) *
                         frequencies[static_cast<std::size_t>(e % (E / 2))];
    const double cosine = std::abs(std::cos(angle)), sine = std::abs(std::sin(angle));
    const double terms = std::abs(x[i]) * cosine + std::abs(x[other]) * sine;
    const double turned = 2 * unit_roundoff(Dtype::f64) * angle * (std::abs(x[i]) + std::abs(x[other]));
    return rounding.stored(y[i], rounding.gamma(3) * terms + turned);
  });
}

RC_GTEST_PROP(RopeImpl, MatchesReference, ()) {
  const auto type = tests::draw_dtype();
  const Index B = *rc::gen::inRange<Index>(1, 3), T = *rc::gen::inRange<Index>(1, 12),
              E = 2 * *rc::gen::inRange<Index>(1, 12);
  const Index heads = *rc::gen::inRange<Index>(1, 6), rotated = *rc::gen::inRange<Index>(1, heads + 1);
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  const bool restart = *rc::gen::arbitrary<bool>(), inverse = *rc::gen::arbitrary<bool>();
  const auto frequencies = spec::rope::inverse_frequencies(E, 10000, {});
  reference::Ids positions;
  for (Index n = 0; n < B * T; ++n) positions.push_back(restart ? *rc::gen::inRange<Index>(0, 300) : n % T);
  const at::Tensor x = tests::normal({B, T, heads, E}, seed, type);
  const auto table = rope::table(frequencies, 300, type, at::kCPU);
  const at::Tensor given = restart ? tests::integers(positions, at::kInt).view({B, T}) : at::Tensor();

  const auto turned = exact(x.narrow(2, 0, rotated));
  const auto expected = inverse ? reference::rope::backward(turned, positions, frequencies)
                                : reference::rope::forward(turned, positions, frequencies);
  for (bool generic : {false, true}) {
    RC_LOG() << (generic ? "aten" : "cpu") << "\n";
    const at::Tensor y = x.clone();
    (generic ? rope::aten::rotate : rope::rotate)(y, rotated, table, given, inverse);
    ASSAY_RC_CLOSE(values(y.narrow(2, 0, rotated)), values(expected),
                   bound(tests::rounding_of(type), turned, expected, positions, frequencies));
    RC_ASSERT(tests::same_bits(y.narrow(2, rotated, heads - rotated), x.narrow(2, rotated, heads - rotated)));
  }
}

TEST(RopeImpl, SameBitsOnAnyNumberOfThreads) {
  const at::Tensor x = tests::normal({4, 100, 6, 16}, 1, at::kFloat);
  const auto table = rope::table(spec::rope::inverse_frequencies(16, 10000, {}), 100, at::kFloat, at::kCPU);
  EXPECT_TRUE(tests::repeatable([&] {
    at::Tensor y = x.clone();
    rope::rotate(y, 4, table, {}, false);
    return std::vector{y};
  }));
}

TEST(RopeImpl, ConstraintsAreChecked) {
  const auto table = rope::table({1.0, 0.1}, 8, at::kFloat, at::kCPU);
  const auto rotate = [&](reference::Shape shape, const at::Tensor& positions) {
    return tests::refusal([&] { rope::rotate(at::ones(shape), 1, table, positions, false); });
  };
  EXPECT_EQ(rotate({1, 2, 1, 4}, {}), "accepted");
  EXPECT_EQ(rotate({1, 2, 1, 3}, {}), "rope_c1");
  EXPECT_EQ(rotate({1, 2, 1, 4}, tests::integers({0, 1, 2}, at::kInt)), "rope_c3");
  EXPECT_EQ(rotate({1, 2, 1, 4}, tests::integers({0, -1}, at::kInt)), "rope_c3");
  EXPECT_EQ(rotate({1, 2, 1, 6}, {}), "rope_c5");
  EXPECT_EQ(rotate({1, 9, 1, 4}, {}), "rope_c6");
  EXPECT_EQ(rotate({1, 2, 1, 4}, tests::integers({0, 8}, at::kInt)), "rope_c6");
}

}  // namespace
}  // namespace assay::impl
