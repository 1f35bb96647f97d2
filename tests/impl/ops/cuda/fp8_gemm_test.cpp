// labels: gpu parity
// cuBLASLt's FP8 GEMMs against exact sums of the same FP8 values. Errors are printed as shares of the bound
// of the tensor core's accumulator (spec/ops/fp8_gemm/fp8_gemm.md).
#include "impl/ops/gemm/fp8_gemm.hpp"

#include <ATen/cuda/CUDAContext.h>
#include <gtest/gtest.h>

#include <iostream>
#include <limits>
#include <map>

#include "impl/ops/gemm/cuda_gemm.hpp"
#include "spec/error.hpp"
#include "tests/impl/ops/parity/fp8_linear_parity.hpp"
#include "tests/support/gpu.hpp"

namespace assay::impl::cuda_fp8_gemm_test {
namespace {

using namespace parity;
using spec::fp8_gemm::Accumulation;

/// What this GPU sums in. Ada's tensor cores are not described anywhere: Hopper's are assumed.
Accumulation accumulation(bool fast) {
  if (at::cuda::getCurrentDeviceProperties()->major >= 10) return Accumulation::blackwell;
  return fast ? Accumulation::hopper_fast : Accumulation::hopper;
}

SumBound sums(bool fast) {
  return [used = accumulation(fast)](const auto& a, const auto& b) { return running_bound(used, a, b); };
}

/// Results that are the fp32 sum of the rule itself, in percent: k ascending, promoted every 128.
double by_the_rule(const Fp8Matrix& a, const Fp8Matrix& b, const at::Tensor& out, bool fast) {
  const at::Tensor results = out.cpu().to(at::kDouble).contiguous();
  int same = 0, all = 0;
  for (std::int64_t i = 0; i < results.numel() && all < 100; i += results.numel() / 100 | 1, ++all)
    same += results.const_data_ptr<double>()[i] ==
            spec::fp8_gemm::sum(accumulation(fast), spec::fp8_gemm::operand(a.exact, i / b.exact.rows),
                                spec::fp8_gemm::operand(b.exact, i % b.exact.rows));
  return 100.0 * same / all;
}

struct Pair {
  Quantisation a, b;
  Recipe recipe;  ///< that this GPU must compute
};

constexpr Quantisation tensor{Format::e4m3, Scaling::tensor}, tensor_e5m2{Format::e5m2, Scaling::tensor},
    row{Format::e4m3, Scaling::row}, row_e5m2{Format::e5m2, Scaling::row},
    token{Format::e4m3, Scaling::block_1x128}, token_e5m2{Format::e5m2, Scaling::block_1x128},
    block{Format::e4m3, Scaling::block_128x128}, mx{Format::e4m3, Scaling::mx_1x32};

const std::vector<Pair> pairs = {{tensor, tensor, Recipe::fp8_tensor},
                                 {tensor_e5m2, tensor, Recipe::fp8_tensor},
                                 {tensor, tensor_e5m2, Recipe::fp8_tensor},
                                 // No recipe takes rows; GPUs that compute blocks compute these as well.
                                 {row, row, Recipe::fp8_block},
                                 {row_e5m2, row, Recipe::fp8_block},
                                 {token, block, Recipe::fp8_block},
                                 {block, token, Recipe::fp8_block},
                                 {token, token, Recipe::fp8_block},
                                 {token_e5m2, token, Recipe::fp8_block},
                                 {mx, mx, Recipe::mxfp8}};

std::string name(const Quantisation& each) {
  return std::string(to_string(each.format)) + " " + to_string(each.scaling);
}

/// Smallest extent of a pair, and multiples of it.
std::vector<std::array<std::int64_t, 3>> shapes(const Pair& pair) {
  std::vector<std::array<std::int64_t, 3>> all = {
      {128, 128, 128}, {256, 384, 640}, {384, 128, 4096}, {4096, 256, 512}};
  if (pair.recipe == Recipe::fp8_tensor || pair.a.scaling == Scaling::row)
    all.insert(all.end(), {{16, 16, 16}, {32, 16, 144}, {144, 32, 16}, {128, 144, 32}, {16, 4096, 48}});
  if (pair.recipe == Recipe::mxfp8) all.insert(all.end(), {{32, 32, 32}, {160, 32, 96}});
  return all;
}

/// Every way of writing the result, at one shape; the largest share of the bound.
double all_results(const Pair& pair, const std::array<std::int64_t, 3>& shape, bool fast) {
  const auto [M, N, K] = shape;
  const Fp8Matrix a = fp8_matrix(uneven(M, K, 1), pair.a), b = fp8_matrix(uneven(N, K, 2), pair.b);
  const Quantised left = on(at::kCUDA, a.given), right = on(at::kCUDA, b.given);
  const SumBound bound = sums(fast);
  double largest = 0;
  const auto check = [&](const char* what, const at::Tensor& out, const at::Tensor& before = {},
                         double beta = 1, const at::Tensor& bias = {}) {
    const Fp8Compared compared = compare_fp8(a.exact, b.exact, out, bound, before, beta, bias);
    EXPECT_TRUE(compared.close()) << what << ", " << name(pair.a) << " x " << name(pair.b) << ", " << M
                                  << " x " << N << " x " << K << (fast ? ", fast" : "") << ", "
                                  << out.scalar_type();
    largest = std::max(largest, compared.share());
  };
  for (const at::ScalarType type : {at::kBFloat16, at::kFloat}) {
    at::Tensor out =
        at::full({M, N}, std::numeric_limits<double>::quiet_NaN(), at::TensorOptions(at::kCUDA).dtype(type));
    const cuda::Gemm gemm{.left = {left.codes, false, left.scales, left.scaling},
                          .right = {right.codes, true, right.scales, right.scaling},
                          .fast_accumulation = fast};
    EXPECT_TRUE(cuda::has_algorithm(gemm, out, {})) << "the library itself does not compute it";
    EXPECT_TRUE(cuda::has_algorithm(gemm, out, out)) << "the library itself does not add to it";
    fp8::gemm(left, right, out, out, 0, {}, fast);  // nothing is read
    check("beta 0", out);
    fp8::gemm(left, right, out, {}, 1, {}, fast);
    check("alone", out);
    if (type == at::kFloat && K >= 4096)
      std::cout << "fp8 " << name(pair.a) << " x " << name(pair.b) << (fast ? " fast" : "") << ": K " << K
                << ", " << by_the_rule(a, b, out, fast) << " % as the rule sums" << std::endl;
    const at::Tensor before = out.cpu();
    fp8::gemm(left, right, out, out, 1, {}, fast);
    check("beta 1", out, before);
    const at::Tensor residual = tests::normal({M, N}, 3, type), bias = tests::normal({N}, 4, type);
    fp8::gemm(left, right, out, residual.to(at::kCUDA), 1, {}, fast);
    check("residual", out, residual);
    fp8::gemm(left, right, out, {}, 1, bias.to(at::kCUDA), fast);
    check("bias", out, {}, 1, bias);
  }
  return largest;
}

TEST(Fp8GemmCuda, EveryPairOfScalesSumsTheDecodedValues) {
  ASSAY_NEEDS_GPU();
  int computed = 0;
  for (const Pair& pair : pairs) {
    const std::string refused = fp8::refusal(pair.recipe, at::Device(at::kCUDA, 0));
    if (!refused.empty()) {
      std::cout << "fp8 " << name(pair.a) << " x " << name(pair.b) << " not here: " << refused << std::endl;
      continue;
    }
    ++computed;
    const bool whole = pair.a.scaling == Scaling::tensor || pair.a.scaling == Scaling::row;
    for (const bool fast : {false, true}) {
      if (fast && !whole) continue;  // blocks have scales of their own every 128 products
      double largest = 0;
      for (const auto& shape : shapes(pair)) largest = std::max(largest, all_results(pair, shape, fast));
      std::cout << "fp8 " << name(pair.a) << " x " << name(pair.b) << (fast ? " fast" : "") << ": " << largest
                << " of the bound" << std::endl;
    }
  }
  EXPECT_GT(computed, 0) << "this GPU computes no FP8 GEMM";
}

/// Of every entry of a result of several tiles of every kernel, in fp64 on the GPU.
TEST(Fp8GemmCuda, EveryEntryOfALargeResultIsWithinTheBoundOfAnyOrder) {
  ASSAY_NEEDS_GPU();
  constexpr std::int64_t M = 2048, N = 1152, K = 4096;
  const at::Device device(at::kCUDA, 0);
  const auto magnitudes = [](const Quantised& x, Format format) {  // spec::fp8_gemm::Operand::magnitudes
    const at::Tensor size = x.codes.to(at::kFloat).abs();
    const at::Tensor raised = size.clamp_min(spec::quantise::least_normal(format)).mul_(size.ne(0));
    return quantise::dequantise(
        {.codes = raised.to(x.codes.scalar_type()), .scales = x.scales, .scaling = x.scaling}, at::kDouble);
  };
  const at::Tensor left = uneven(M, K, 1), right = uneven(N, K, 2);
  for (const Pair& pair : {pairs[0], pairs[1], pairs[5], pairs[7]}) {
    if (!fp8::refusal(pair.recipe, device).empty()) continue;
    const auto quantised = [&](const at::Tensor& values, const Quantisation& quantisation) {
      return on(device, quantise::quantise(values, quantisation, quantise::Orientation::rows).rows);
    };
    const Quantised a = quantised(left, pair.a), b = quantised(right, pair.b);
    at::Tensor out = at::empty({M, N}, at::TensorOptions(device).dtype(at::kFloat));
    fp8::gemm(a, b, out);
    const at::Tensor exact = at::mm(quantise::dequantise(a, at::kDouble),
                                    quantise::dequantise(b, at::kDouble).t()),
                     terms = at::mm(magnitudes(a, pair.a.format), magnitudes(b, pair.b.format).t());
    const double coefficient = spec::fp8_gemm::gemm_bound(accumulation(false), K, 1),
                 stored = unit_roundoff(Dtype::f32);
    const at::Tensor share =
        (out.to(at::kDouble) - exact).abs() / (coefficient * terms * (1 + stored) + stored * exact.abs());
    const auto most = share.max().item<double>();
    std::cout << "fp8 " << name(pair.a) << " x " << name(pair.b) << ": " << most
              << " of the bound of any order" << std::endl;
    EXPECT_LE(most, 1);
  }
}

TEST(Fp8GemmCuda, LinearsOfTheRecipesMatchTheirSums) {
  ASSAY_NEEDS_GPU();
  for (const Recipe recipe : {Recipe::fp8_tensor, Recipe::fp8_block, Recipe::mxfp8}) {
    if (!fp8::refusal(recipe, at::Device(at::kCUDA, 0)).empty()) continue;
    // The bias is in the write-back of the larger one only (spec::bias::least_fused_flops).
    for (const std::int64_t N : {256, 8192}) {
      std::map<std::string, double> shares;
      const std::int64_t in = N == 256 ? 256 : 2304;
      fp8_linear_matches_sums(recipe, N, in, 2 * in, at::kBFloat16, at::kCUDA, 7,
                              /*fast_accumulation=*/false, sums(false),
                              [&](const char* result, const Fp8Compared& compared) {
                                EXPECT_TRUE(compared.close()) << to_string(recipe) << ", " << result;
                                double& share = shares[result];
                                share = std::max(share, compared.share());
                              });
      for (const auto& [result, share] : shares)
        std::cout << "fp8 linear " << to_string(recipe) << ", " << N << " tokens, " << result << ": " << share
                  << " of the bound" << std::endl;
    }
  }
}

TEST(Fp8GemmCuda, SameBitsTwice) {
  ASSAY_NEEDS_GPU();
  for (const Pair& pair : {pairs[0], pairs[5], pairs[7]}) {
    if (!fp8::refusal(pair.recipe, at::Device(at::kCUDA, 0)).empty()) continue;
    const Quantised a = on(at::kCUDA, fp8_matrix(uneven(1024, 2048, 1), pair.a).given),
                    b = on(at::kCUDA, fp8_matrix(uneven(768, 2048, 2), pair.b).given);
    EXPECT_TRUE(tests::repeatable([&] {
      at::Tensor out = at::empty({1024, 768}, at::TensorOptions(at::kCUDA).dtype(at::kFloat));
      fp8::gemm(a, b, out);
      return std::vector{out};
    }));
  }
}

/// One plan serves many calls: each brings scales and a bias of its own.
TEST(Fp8GemmCuda, ScalesAreThoseOfTheCall) {
  ASSAY_NEEDS_GPU();
  if (const std::string why = fp8::refusal(Recipe::fp8_tensor, at::Device(at::kCUDA, 0)); !why.empty())
    GTEST_SKIP() << why;
  const Quantised a = on(at::kCUDA, fp8_matrix(uneven(64, 128, 1), tensor).given),
                  b = on(at::kCUDA, fp8_matrix(uneven(32, 128, 2), tensor).given);
  const auto result = [&](double left, double right) {
    at::Tensor out = at::empty({64, 32}, at::TensorOptions(at::kCUDA).dtype(at::kFloat));
    fp8::gemm({.codes = a.codes, .scales = a.scales * left, .scaling = a.scaling},
              {.codes = b.codes, .scales = b.scales * right, .scaling = b.scaling}, out);
    return out;
  };
  const at::Tensor one = result(1, 1);
  EXPECT_TRUE(tests::same_bits(result(4, 1), one * 4));
  EXPECT_TRUE(tests::same_bits(result(1, 0.125), one * 0.125));
  EXPECT_TRUE(tests::same_bits(result(1, 1), one));
}

TEST(Fp8GemmCuda, WhatTheGpuDoesNotComputeIsRefused) {
  ASSAY_NEEDS_GPU();
  const at::Device device(at::kCUDA, 0);
  const int major = at::cuda::getCurrentDeviceProperties()->major;
  if (major == 9) {
    EXPECT_EQ(fp8::refusal(Recipe::fp8_tensor, device), "");
    EXPECT_EQ(fp8::refusal(Recipe::fp8_block, device), "");
    const std::string refused = fp8::refusal(Recipe::mxfp8, device);
    EXPECT_NE(refused.find("nearest: compute.linear=fp8_block"), std::string::npos) << refused;
    const Quantised a = on(device, fp8_matrix(uneven(128, 128, 1), mx).given);
    at::Tensor out = at::empty({128, 128}, at::TensorOptions(device).dtype(at::kBFloat16));
    try {
      fp8::gemm(a, a, out);
      ADD_FAILURE() << "computed";
    } catch (const UserError& error) {
      EXPECT_EQ(error.what(), refused);
    }
  }
  // Extents that are not multiples of 16, and two matrices of 128 x 128 blocks: never in bf16.
  at::Tensor out = at::empty({24, 40}, at::TensorOptions(device).dtype(at::kBFloat16));
  const Quantised a = on(device, fp8_matrix(uneven(24, 72, 1), tensor).given),
                  b = on(device, fp8_matrix(uneven(40, 72, 2), tensor).given);
  EXPECT_THROW(fp8::gemm(a, b, out), UserError);
  const Quantised c = on(device, fp8_matrix(uneven(128, 128, 1), block).given);
  out = at::empty({128, 128}, out.options());
  EXPECT_THROW(fp8::gemm(c, c, out), UserError);
  // The exact sums of fp64 on any GPU.
  const Fp8Matrix d = fp8_matrix(uneven(24, 72, 1), mx), e = fp8_matrix(uneven(40, 72, 2), token);
  out = at::empty({24, 40}, out.options().dtype(at::kDouble));
  fp8::gemm(on(device, d.given), on(device, e.given), out);
  EXPECT_TRUE(compare_fp8(d.exact, e.exact, out, plain_sums(at::kDouble)).close());
}

}  // namespace
}  // namespace assay::impl::cuda_fp8_gemm_test
