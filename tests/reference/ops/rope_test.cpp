// labels: unit property golden
#include "reference/ops/rope.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <complex>
#include <numbers>

#include "spec/ops/rope/rope.hpp"
#include "spec/tolerance.hpp"
#include "tests/support/compare.hpp"
#include "tests/support/draw.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/golden_rope.hpp"
#include "tests/support/gradient_check.hpp"

namespace assay::reference::rope_test {
namespace {

using spec::rope::inverse_frequencies;
using spec::rope::Pairs;
using tests::Allowed;
using tests::values;

const double u = unit_roundoff(Dtype::f64);

spec::rope::Form draw_form() {
  return {.pairs = *rc::gen::element(Pairs::halves, Pairs::neighbours),
          .factor = *rc::gen::element(1.0, 0.75, 1.25)};
}

Ids draw_positions(Index count, std::int64_t below) {
  return *rc::gen::container<Ids>(static_cast<std::size_t>(count), rc::gen::inRange<std::int64_t>(0, below));
}

TEST(RopeReference, GivesTheSpecExample) {
  // spec/ops/rope/rope.md: two tokens of pi/4 make a right angle; cos(pi/2) is u, not 0, so entries are off
  // by 4u at most.
  const std::vector<double> quarter(2, std::numbers::pi / 4);
  ASSAY_EXPECT_CLOSE(values(rope::forward(Tensor<double>({1, 1, 1, 4}, {1, 2, 3, 4}), {2}, quarter)),
                     (tests::Values{{1, 1, 1, 4}, {-3, -4, 1, 2}}), Allowed::relative(gamma(2, u)));
  ASSAY_EXPECT_CLOSE(values(rope::forward(Tensor<double>({1, 1, 1, 4}, {1, 2, 3, 4}), {2}, quarter,
                                          {.pairs = Pairs::neighbours})),
                     (tests::Values{{1, 1, 1, 4}, {-2, 1, -4, 3}}), Allowed::relative(gamma(2, u)));
}

TEST(RopeReference, MatchesMpmathAndTorchFloat64) {
  for (const char* name :
       {"plain", "positions_restart", "llama3_scaling", "llama3_small_context", "interleaved",
        "interleaved_yarn_deepseek", "interleaved_yarn_unequal_mscales", "yarn_qwen", "yarn_stated_factor"}) {
    SCOPED_TRACE(name);
    const auto golden = tests::load_golden(std::string("ops/rope/") + name + ".json");
    const auto x = tests::tensor(golden.tensor("x")), dy = tests::tensor(golden.tensor("dy"));
    const auto scaling = tests::rope_scaling(golden);
    const spec::rope::Form form{
        .pairs = golden.scalars.contains("interleaved") ? Pairs::neighbours : Pairs::halves,
        .factor = spec::rope::attention_factor(scaling)};
    ASSAY_EXPECT_CLOSE(
        (tests::Values{{1}, {form.factor}}),
        (tests::Values{{1},
                       {golden.scalars.contains("cosine_factor") ? golden.scalar("cosine_factor") : 1.0}}),
        Allowed::relative(1e-14));
    const auto frequencies = inverse_frequencies(x.extent(3), golden.scalar("theta"), scaling);
    const Ids positions = golden.ids("positions");
    const tests::Values expected = golden.tensor("inverse_frequency");
    std::vector<double> bound;  // of each frequency: they span decades
    for (double frequency : expected.data) bound.push_back(1e-14 * frequency);
    ASSAY_EXPECT_CLOSE((tests::Values{expected.shape, frequencies}), expected, Allowed::elementwise(bound));
    ASSAY_EXPECT_CLOSE(values(rope::forward(x, positions, frequencies, form)), golden.tensor("y"),
                       Allowed::relative(1e-10));
    ASSAY_EXPECT_CLOSE(values(rope::backward(dy, positions, frequencies, form)), golden.tensor("dx"),
                       Allowed::relative(1e-10));
  }
}

TEST(RopeReference, C1RejectsHeadsThatHaveNoPairs) {
  EXPECT_THROW(rope::forward(tests::normal({1, 2, 3, 5}, 1), {0, 1}, {1, 1}), SpecError);
}

TEST(RopeReference, C3RejectsAnotherNumberOfPositionsAndNegativeOnes) {
  EXPECT_THROW(rope::forward(tests::normal({1, 2, 3, 4}, 1), {0}, {1, 1}), SpecError);
  EXPECT_THROW(rope::backward(tests::normal({1, 2, 3, 4}, 1), {0, -1}, {1, 1}), SpecError);
}

TEST(RopeReference, C5RejectsAnotherNumberOfFrequencies) {
  EXPECT_THROW(rope::forward(tests::normal({1, 2, 3, 4}, 1), {0, 1}, {1}), SpecError);
}

TEST(RopeReference, PositionZeroLeavesX) {
  const auto x = tests::normal({1, 2, 3, 6}, 1);
  ASSAY_EXPECT_CLOSE(values(rope::forward(x, {0, 0}, inverse_frequencies(6, 1e4, {}))), values(x),
                     Allowed::exact());
}

RC_GTEST_PROP(RopeReference, BackwardMatchesCentralDifference, ()) {
  const Index B = *rc::gen::inRange(1, 3), T = *rc::gen::inRange(1, 4), H = *rc::gen::inRange(1, 4);
  const Index E = 2 * *rc::gen::inRange(1, 4);
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  const auto x = tests::normal({B, T, H, E}, seed), dy = tests::normal({B, T, H, E}, seed + 1);
  const auto frequencies =
      inverse_frequencies(E, 1e4, spec::RopeScaling{.factor = 8, .original_context = 64});
  const Ids positions = draw_positions(B * T, 200);
  const auto form = draw_form();
  const auto by_x = [&](const auto& moved) {
    return tests::dot(dy, rope::forward(moved, positions, frequencies, form));
  };
  ASSAY_RC_CLOSE(values(rope::backward(dy, positions, frequencies, form)), tests::central_difference(by_x, x),
                 Allowed::relative(1e-7));
}

RC_GTEST_PROP(RopeReference, ExecutesExactlyTheFlopsOfTheSpec, ()) {
  const Index B = *rc::gen::inRange(0, 3), T = *rc::gen::inRange(0, 4), H = *rc::gen::inRange(1, 4);
  const Index E = 2 * *rc::gen::inRange(1, 5);
  const auto x = tests::counted(tests::normal({B, T, H, E}, 1));
  const auto frequencies = inverse_frequencies(E, 1e4, {});
  const Ids positions = draw_positions(B * T, 10);
  const spec::rope::Shape shape{.B = B, .T = T, .H = H, .E = E};
  const auto form = draw_form();
  RC_ASSERT(tests::operations_of([&] { rope::forward(x, positions, frequencies, form); }) ==
            spec::rope::forward_flops(shape).vector);
  RC_ASSERT(tests::operations_of([&] { rope::backward(x, positions, frequencies, form); }) ==
            spec::rope::backward_flops(shape).vector);
}

RC_GTEST_PROP(RopeReference, NeighboursAreAComplexNumberThatIsMultiplied, ()) {
  const Index T = *rc::gen::inRange(1, 4), H = *rc::gen::inRange(1, 4), E = 2 * *rc::gen::inRange(1, 5);
  const auto x = tests::normal({1, T, H, E}, *rc::gen::arbitrary<std::uint64_t>());
  const Ids positions = draw_positions(T, 1000);
  const auto frequencies = inverse_frequencies(E, 1e4, {});
  const double factor = *rc::gen::element(1.0, 1.25);
  const auto y = rope::forward(x, positions, frequencies, {.pairs = Pairs::neighbours, .factor = factor});
  tests::Values expected{x.shape(), {}};
  for (Index n = 0; n < x.size(); n += 2) {
    const double angle = static_cast<double>(positions[static_cast<std::size_t>(n / (H * E))]) *
                         frequencies[static_cast<std::size_t>(n % E / 2)];
    const std::complex<double> turned =
        std::complex<double>(x[n], x[n + 1]) * std::exp(std::complex<double>(std::log(factor), angle));
    expected.data.push_back(turned.real());
    expected.data.push_back(turned.imag());
  }
  // In units of u, of a pair's norm times the factor, which is at most sqrt(2) times the largest entry: the
  // cosine, the sine and their product with the factor 3 on either side, the logarithm and its exponential 2
  // + 2 there, the product and the sum sqrt(2) gamma_2 on both: under 16, times sqrt(2).
  ASSAY_RC_CLOSE(values(y), expected, Allowed::relative(gamma(23, u)));
}

RC_GTEST_PROP(RopeReference, PairsAreTheSameInEitherOrderOfEntries, ()) {
  const Index E = 2 * *rc::gen::inRange(1, 9);
  const auto x = tests::normal({1, 1, 1, E}, *rc::gen::arbitrary<std::uint64_t>());
  Tensor<double> apart(x.shape());
  for (Index e = 0; e < E / 2; ++e) apart[e] = x[2 * e], apart[e + E / 2] = x[2 * e + 1];
  const Ids position = draw_positions(1, 1000);
  const auto frequencies = inverse_frequencies(E, 1e4, {});
  const auto halves = rope::forward(apart, position, frequencies),
             neighbours = rope::forward(x, position, frequencies, {.pairs = Pairs::neighbours});
  for (Index e = 0; e < E / 2; ++e)
    RC_ASSERT((halves[e] == neighbours[2 * e] && halves[e + E / 2] == neighbours[2 * e + 1]));
}

RC_GTEST_PROP(RopeReference, PreservesTheNormOfEveryPair, ()) {
  const Index E = 2 * *rc::gen::inRange(1, 9);
  const auto x = tests::normal({1, 1, 1, E}, *rc::gen::arbitrary<std::uint64_t>());
  const auto y = rope::forward(x, draw_positions(1, 100000), inverse_frequencies(E, 1e4, {}));
  tests::Values before{{E / 2}, {}}, after{{E / 2}, {}};
  for (Index e = 0; e < E / 2; ++e) {
    before.data.push_back(std::hypot(x[e], x[e + E / 2]));
    after.data.push_back(std::hypot(y[e], y[e + E / 2]));
  }
  // A rotation keeps the norm whatever its angle, so the error of the angle does not count. Cosine and sine
  // within one ulp (2 u) change it by 2 u; the product and the sum of each entry by gamma_2 (|cos| + |sin|)
  // <= sqrt(2) gamma_2, under 3 u; hypot is within one ulp, on both sides: 2 + 3 + 4.
  std::vector<double> bound;
  for (double norm : before.data) bound.push_back(gamma(9, u) * norm);
  ASSAY_RC_CLOSE(after, before, Allowed::elementwise(bound));
}

RC_GTEST_PROP(RopeReference, BackwardUndoesForward, ()) {
  const Index T = *rc::gen::inRange(1, 5), H = *rc::gen::inRange(1, 4), E = 2 * *rc::gen::inRange(1, 5);
  const auto x = tests::normal({1, T, H, E}, *rc::gen::arbitrary<std::uint64_t>());
  const Ids positions = draw_positions(T, 100000);
  const auto frequencies = inverse_frequencies(E, 1e4, {});
  const auto back = rope::backward(rope::forward(x, positions, frequencies), positions, frequencies);
  // Both turn by the same computed cosine and sine, each within one ulp: together they multiply a pair by
  // cos^2 + sin^2 = 1 +- 4 u. Each rotation rounds by sqrt(2) gamma_2 of the pair's norm: 4 sqrt(2) u for
  // two. The norm is at most sqrt(2) times the largest entry: sqrt(2) (4 + 4 sqrt(2)) u < 14 u of it.
  ASSAY_RC_CLOSE(values(back), values(x), Allowed::relative(gamma(14, u)));
}

RC_GTEST_PROP(RopeReference, ScoresDependOnTheDistanceOfPositionsAlone, ()) {
  const Index E = 2 * *rc::gen::inRange(1, 5);
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  const auto q = tests::normal({1, 1, 1, E}, seed), k = tests::normal({1, 1, 1, E}, seed + 1);
  const auto frequencies = inverse_frequencies(E, 1e4, {});
  const std::int64_t s = *rc::gen::inRange(0, 50), distance = *rc::gen::inRange(0, 50),
                     shift = *rc::gen::inRange(1, 900);
  const auto score = [&](std::int64_t at_q, std::int64_t at_k) {
    return tests::dot(rope::forward(q, {at_q}, frequencies), rope::forward(k, {at_k}, frequencies));
  };
  // In units of u |q| |k|: an angle is a product of a position and a frequency of at most 1, so its rounding
  // turns a vector by at most its position, and the four positions add up to 4 s + 2 distance + 2 shift.
  // Rotating rounds by sqrt(2) gamma_4 (product, sum, cosine or sine within one ulp), four times: under 23. A
  // dot product of E terms rounds by gamma_E, twice; the last one is for the roundings of |q| |k|, of second
  // order.
  const double roundings = static_cast<double>(4 * s + 2 * distance + 2 * shift + 23 + 2 * E + 1);
  const double magnitude = std::sqrt(tests::dot(q, q) * tests::dot(k, k));
  RC_ASSERT(std::abs(score(s + distance + shift, s + shift) - score(s + distance, s)) <=
            gamma(roundings, u) * magnitude);
}

}  // namespace
}  // namespace assay::reference::rope_test
