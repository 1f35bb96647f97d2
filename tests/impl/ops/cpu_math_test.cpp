// labels: unit property
#include "impl/ops/cpu_math.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "impl/ops/gemm/cpu_gemm.hpp"
#include "spec/tolerance.hpp"
#include "tests/support/compare.hpp"
#include "tests/support/draw.hpp"

namespace assay::impl::cpu_math_test {
namespace {

TEST(CpuMath, ExponentialIsWithinTwoRoundoffs) {
  // Steps of 2^-12 over every argument with a normal result; the reduction repeats each ln 2, so that is
  // dense enough.
  double worst = 0;
  for (int i = -87 * 4096; i <= 88 * 4096; ++i) {
    const float x = static_cast<float>(i) * 0x1p-12f + 1e-5f;
    const double truth = std::exp(static_cast<double>(x));
    worst = std::max(worst, std::abs(static_cast<double>(cpu::exponential(x)) - truth) / truth);
  }
  EXPECT_LE(worst, 2 * unit_roundoff(Dtype::f32));
  RecordProperty("share_of_bound", std::to_string(worst / (2 * unit_roundoff(Dtype::f32))));
}

TEST(CpuMath, ExponentialOfExtremes) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(cpu::exponential(-infinity), 0.0f);
  EXPECT_EQ(cpu::exponential(-100.0f), 0.0f);
  EXPECT_EQ(cpu::exponential(0.0f), 1.0f);
  EXPECT_EQ(cpu::exponential(infinity), infinity);
  EXPECT_EQ(cpu::exponential(89.0f), infinity);
  EXPECT_TRUE(std::isnan(cpu::exponential(std::numeric_limits<float>::quiet_NaN())));
}

TEST(CpuMath, ExponentialOfLanesIsThatOfEach) {
  for (int i = -1000; i < 1000; ++i) {
    cpu::Lanes<float>::Vector x;
    for (int lane = 0; lane < 8; ++lane)
      x[lane] = static_cast<float>(i) * 0.1f + static_cast<float>(lane) * 0.013f;
    const auto y = cpu::exponential(x);
    for (int lane = 0; lane < 8; ++lane) {
      const double truth = std::exp(static_cast<double>(x[lane]));
      const double expected = x[lane] < -88  ? 0
                              : x[lane] > 89 ? std::numeric_limits<float>::infinity()
                                             : truth;
      if (x[lane] > -87 && x[lane] < 88) {
        EXPECT_NEAR(y[lane] / truth, 1, 2 * unit_roundoff(Dtype::f32)) << x[lane];
      } else if (x[lane] < -88 || x[lane] > 89) {
        EXPECT_EQ(y[lane], expected) << x[lane];
      }
    }
  }
}

TEST(CpuMath, LoadsAndStoresNoMoreThanTheirCount) {
  const at::BFloat16 from[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  const auto lanes = cpu::load(from, 3, cpu::Lanes<float>::all(-1));
  EXPECT_EQ(lanes[2], 3);
  EXPECT_EQ(lanes[3], -1);
  float to[8] = {9, 9, 9, 9, 9, 9, 9, 9};
  cpu::store(to, lanes, 2);
  EXPECT_EQ(to[1], 2);
  EXPECT_EQ(to[2], 9);
  cpu::store(to, cpu::load(from));
  EXPECT_EQ(to[7], 8);
}

template <class M>
void multiply_matches(std::int64_t rows, std::int64_t columns, std::int64_t inner, bool transposed,
                      bool add) {
  const std::int64_t width = cpu::padded<M>(columns);
  std::vector<M> a(static_cast<std::size_t>(rows * inner)), b(static_cast<std::size_t>(inner * width));
  std::vector<M> c(static_cast<std::size_t>(rows * width));
  const spec::random::Stream stream(7, spec::random::Site::test, 1);
  std::uint64_t drawn = 0;
  for (auto* matrix : {&a, &b, &c})
    for (M& value : *matrix) value = static_cast<M>(stream.normal(drawn++));
  const std::vector<M> before = c;
  const std::int64_t row = transposed ? 1 : inner, column = transposed ? rows : 1;
  const cpu::Left<M> left{a.data(), row, column};
  if (add)
    cpu::multiply<M, true>(rows, width, inner, left, {b.data(), width}, {c.data(), width});
  else
    cpu::multiply<M>(rows, width, inner, left, {b.data(), width}, {c.data(), width});

  tests::Values actual{{rows, width}, {}}, expected{{rows, width}, {}};
  std::vector<double> bounds;
  for (std::int64_t m = 0; m < rows; ++m) {
    for (std::int64_t n = 0; n < width; ++n) {
      double sum = add ? before[static_cast<std::size_t>(m * width + n)] : 0, sizes = std::abs(sum);
      for (std::int64_t k = 0; k < inner; ++k) {
        const double term = static_cast<double>(a[static_cast<std::size_t>(m * row + k * column)]) *
                            static_cast<double>(b[static_cast<std::size_t>(k * width + n)]);
        sum += term;
        sizes += std::abs(term);
      }
      actual.data.push_back(c[static_cast<std::size_t>(m * width + n)]);
      expected.data.push_back(sum);
      const double u = sizeof(M) == 4 ? unit_roundoff(Dtype::f32) : unit_roundoff(Dtype::f64);
      bounds.push_back(2 * gamma(static_cast<double>(inner + 1), u) * sizes);
    }
  }
  ASSAY_RC_CLOSE(actual, expected, tests::Allowed::elementwise(bounds));
}

RC_GTEST_PROP(CpuMath, MultiplyMatchesPlainLoops, ()) {
  const auto rows = *rc::gen::inRange<std::int64_t>(1, 20), columns = *rc::gen::inRange<std::int64_t>(1, 40);
  const auto inner = *rc::gen::inRange<std::int64_t>(1, 20);
  const bool transposed = *rc::gen::arbitrary<bool>(), add = *rc::gen::arbitrary<bool>();
  multiply_matches<float>(rows, columns, inner, transposed, add);
  multiply_matches<double>(rows, columns, inner, transposed, add);
}

}  // namespace
}  // namespace assay::impl::cpu_math_test
