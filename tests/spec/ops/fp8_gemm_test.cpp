// labels: unit property
#include "spec/ops/fp8_gemm/fp8_gemm.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "spec/error.hpp"
#include "spec/random/philox.hpp"
#include "spec/tolerance.hpp"

namespace assay::spec::fp8_gemm_test {
namespace {

using fp8_gemm::Accumulation;
using fp8_gemm::Operand;
using quantise::Format;
using quantise::Scaling;

constexpr Accumulation all[] = {Accumulation::fp32, Accumulation::hopper, Accumulation::hopper_fast,
                                Accumulation::blackwell};

/// Values that are all normal.
Operand plain(const std::vector<double>& values) {
  Operand out{values, values};
  for (double& magnitude : out.magnitudes) magnitude = std::abs(magnitude);
  return out;
}

/// `first`, then K - 1 times `others`.
Operand led_by(double first, double others, std::size_t K) {
  std::vector<double> values(K, others);
  values.front() = first;
  return plain(values);
}

double exact(const Operand& a, const Operand& b) {
  double sum = 0;
  for (std::size_t k = 0; k < a.values.size(); ++k) sum += a.values[k] * b.values[k];
  return sum;
}

double magnitudes(const Operand& a, const Operand& b) {
  double sum = 0;
  for (std::size_t k = 0; k < a.values.size(); ++k) sum += a.magnitudes[k] * b.magnitudes[k];
  return sum;
}

/// One row of K entries, N(mean, 1) with outliers, quantised; the exponents of a share of the entries are far
/// below the rest, so that subnormal codes are among them.
Operand drawn(Format format, Scaling scaling, std::int64_t K, double mean, std::uint64_t seed) {
  const random::Stream stream(seed, random::Site::test, 0);
  std::vector<double> values;
  for (std::int64_t k = 0; k < K; ++k) {
    const auto index = static_cast<std::uint64_t>(k);
    const double rare = stream.normal(index + (1U << 20));
    values.push_back(std::ldexp(mean + stream.normal(index), rare > 2 ? 6 : rare < -1 ? -8 : 0));
  }
  return fp8_gemm::operand(quantise::quantise(values, 1, K, format, scaling), 0);
}

TEST(Fp8GemmSpec, LosesWhatIsBelowTheAlignment) {
  // The examples of the page.
  const auto a = led_by(1, 0x1p-14, 32), ones = led_by(1, 1, 32);
  EXPECT_EQ(exact(a, ones), 1 + 31 * 0x1p-14);
  EXPECT_EQ(fp8_gemm::sum(Accumulation::hopper, a, ones), 1);
  EXPECT_EQ(fp8_gemm::sum(Accumulation::blackwell, a, ones), 1 + 31 * 0x1p-14);
  EXPECT_NEAR(fp8_gemm::gemm_bound(Accumulation::hopper, 32, magnitudes(a, ones)), 4.036e-3, 1e-6);

  const auto large = led_by(0x1p14, 1, 4096), many = led_by(1, 1, 4096);
  EXPECT_EQ(fp8_gemm::sum(Accumulation::hopper_fast, large, many), 0x1p14);
  // Promoted: the first 128 lose 127 ones, the other 31 chunks nothing.
  EXPECT_EQ(fp8_gemm::sum(Accumulation::hopper, large, many), 0x1p14 + 31 * 128);
  EXPECT_EQ(fp8_gemm::sum(Accumulation::fp32, large, many), 0x1p14 + 4095);
}

TEST(Fp8GemmSpec, CutsTheSumOffToItsRegister) {
  // 16,385 needs 15 bits; within one group 2^14 + 1 is cut off at the alignment, a sum of 8,193 + 8,192
  // behind it.
  const auto a = plain({8192, 8192, 1}), b = plain({1, 1, 1});
  EXPECT_EQ(fp8_gemm::sum(Accumulation::hopper, a, b), 16384);  // 1 = 2^(13-13) is kept, then cut off
  EXPECT_EQ(fp8_gemm::sum(Accumulation::hopper, plain({-8192, -8192, -1}), b), -16384);  // toward zero
  EXPECT_EQ(fp8_gemm::sum(Accumulation::hopper, plain({8192, 1}), plain({1, 1})), 8193);
}

TEST(Fp8GemmSpec, AlignsASubnormalAsTheLeastNormal) {
  // 2^-9 is E4M3's least subnormal: aligned as 2^-6 it reaches down to 2^-6 2^-6 2^-13, as itself to 2^-31.
  const Operand small{{0x1p-9, 0x1p-9}, {0x1p-6, 0x1p-6}}, factor{{0x1p-9, 0x1p-6}, {0x1p-6, 0x1p-6}};
  EXPECT_EQ(fp8_gemm::sum(Accumulation::hopper, small, factor), 0x1p-18 + 0x1p-15);
  const Operand scaled{{0x1p-9, 0x1p-20}, {0x1p-6, 0x1p-17}}, one{{0x1p-9, 0x1p-6}, {0x1p-6, 0x1p-6}};
  EXPECT_EQ(fp8_gemm::sum(Accumulation::hopper, scaled, one), 0x1p-18);  // 2^-26 is below 2^-25
}

TEST(Fp8GemmSpec, AnOperandKnowsTheLeastNormalOfItsScale) {
  const auto matrix =
      quantise::quantise(std::vector<double>{896, 0.004, 0, -2}, 1, 4, Format::e4m3, Scaling::row);
  const Operand row = fp8_gemm::operand(matrix, 0);  // scale 2
  EXPECT_EQ(row.values, (std::vector<double>{896, 0x1p-8, 0, -2}));
  EXPECT_EQ(row.magnitudes, (std::vector<double>{896, 0x1p-5, 0, 2}));
}

RC_GTEST_PROP(Fp8GemmSpec, EveryAccumulationStaysWithinItsBounds, ()) {
  const auto K = *rc::gen::inRange<std::int64_t>(0, 1200);
  const auto format = *rc::gen::element(Format::e4m3, Format::e5m2);
  const auto scaling = *rc::gen::element(Scaling::tensor, Scaling::block_1x128, Scaling::mx_1x32);
  const auto mean = *rc::gen::element(0.0, 1.0, 4.0);
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  const auto a = drawn(Format::e4m3, scaling, K, mean, seed), b = drawn(format, scaling, K, mean, seed + 1);
  for (const Accumulation accumulation : all) {
    const double error = std::abs(fp8_gemm::sum(accumulation, a, b) - exact(a, b));
    const double running = fp8_gemm::running_bound(accumulation, a, b);
    RC_ASSERT(error <= running);
    RC_ASSERT(error <= fp8_gemm::gemm_bound(accumulation, K, magnitudes(a, b)));
  }
}

TEST(Fp8GemmSpec, TheBoundsAreNotFarAbove) {
  // Terms just below the alignment are lost whole: a third of the bound of any order, more of the running
  // one.
  const auto a = led_by(1, 0x1.ep-14, 128), ones = led_by(1, 1, 128);
  const double error = exact(a, ones) - fp8_gemm::sum(Accumulation::hopper, a, ones);
  EXPECT_GT(error, 0.85 * fp8_gemm::running_bound(Accumulation::hopper, a, ones));
  EXPECT_GT(error, 0.33 * fp8_gemm::gemm_bound(Accumulation::hopper, 128, magnitudes(a, ones)));
  // N(0, 1), K = 4096: the running bound is many times below the other, and a lost block of 128 is above it.
  const auto normal = [](std::uint64_t seed) {
    const random::Stream stream(seed, random::Site::test, 0);
    std::vector<double> values;
    for (std::uint64_t k = 0; k < 4096; ++k) values.push_back(stream.normal(k));
    return fp8_gemm::operand(quantise::quantise(values, 1, 4096, Format::e4m3, Scaling::tensor), 0);
  };
  const auto x = normal(1), y = normal(2);
  const double running = fp8_gemm::running_bound(Accumulation::hopper, x, y);
  EXPECT_LT(10 * running, fp8_gemm::gemm_bound(Accumulation::hopper, 4096, magnitudes(x, y)));
  EXPECT_LT(running, 0.5 * std::sqrt(128));  // the standard deviation of a block's sum is sqrt(128)
}

TEST(Fp8GemmSpec, TheRunningBoundIsThatOfThePage) {
  // One group: the alignment of 32 terms to M = 3, then the register's cut of the sum 5.
  const double aligned = 0x1p-8 * 3, cut = 0x1p-13 * (5 + aligned);
  EXPECT_DOUBLE_EQ(fp8_gemm::running_bound(Accumulation::hopper_fast, plain({3, 2}), plain({1, 1})),
                   aligned + cut);
  // Promoted, the fp32 addition comes on top.
  EXPECT_DOUBLE_EQ(fp8_gemm::running_bound(Accumulation::hopper, plain({3, 2}), plain({1, 1})),
                   aligned + cut + gamma(1, 0x1p-24) * (5 + aligned + cut));
}

TEST(Fp8GemmSpec, CoefficientsOfThePage) {
  EXPECT_NEAR(fp8_gemm::gemm_bound(Accumulation::fp32, 4096, 1), 2.44e-4, 1e-6);
  EXPECT_NEAR(fp8_gemm::gemm_bound(Accumulation::hopper, 4096, 1), 132 * 0x1p-13 + 32 * 0x1p-24, 1e-9);
  EXPECT_NEAR(fp8_gemm::gemm_bound(Accumulation::hopper_fast, 4096, 1), 0.5156, 1e-4);
  EXPECT_NEAR(fp8_gemm::gemm_bound(Accumulation::blackwell, 4096, 1), 1.373e-4, 1e-7);
  EXPECT_EQ(fp8_gemm::gemm_bound(Accumulation::hopper_fast, 16384, 1), 1);  // nothing is lost twice
  EXPECT_EQ(fp8_gemm::gemm_bound(Accumulation::hopper, 0, 0), 0);
  // A chunk that is not full has as many steps as it needs.
  EXPECT_NEAR(fp8_gemm::gemm_bound(Accumulation::hopper, 33, 1), 2 * 33 * 0x1p-13, 1e-6);
}

TEST(Fp8GemmSpec, C1ThereIsNoTensorCoreOfPaper) {
  EXPECT_EQ(fp8_gemm::tensor_core(Accumulation::hopper).promoted, 128);
  EXPECT_EQ(fp8_gemm::tensor_core(Accumulation::hopper_fast).promoted, 0);
  EXPECT_THROW(fp8_gemm::tensor_core(Accumulation::fp32), SpecError);
}

TEST(Fp8GemmSpec, C2RejectsOperandsOfOtherLengths) {
  try {
    fp8_gemm::sum(Accumulation::hopper, plain({1, 2}), plain({1}));
    FAIL() << "accepted";
  } catch (const SpecError& error) {
    EXPECT_STREQ(error.what(), "fp8_gemm_c2: a has 2 values and 2 magnitudes, b 1 and 1");
  }
  EXPECT_THROW(fp8_gemm::running_bound(Accumulation::fp32, plain({1, 2}), plain({1})), SpecError);
}

}  // namespace
}  // namespace assay::spec::fp8_gemm_test
