// labels: parity property
#include "impl/ops/gemm/fp8_gemm.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <limits>
#include <set>

#include "impl/metrics/executed_flops.hpp"
#include "spec/error.hpp"
#include "tests/impl/ops/parity/fp8_gemm_parity.hpp"

namespace assay::impl::fp8_gemm_test {
namespace {

using namespace parity;
using spec::quantise::Recipe;

Quantisation draw_quantisation() {
  return {*rc::gen::element(Format::e4m3, Format::e5m2),
          *rc::gen::element(Scaling::tensor, Scaling::row, Scaling::block_1x128, Scaling::block_128x128,
                            Scaling::mx_1x32)};
}

RC_GTEST_PROP(Fp8GemmImpl, SumsTheDecodedValues, ()) {
  const std::int64_t M = *rc::gen::inRange(1, 20), N = *rc::gen::inRange(1, 20),
                     K = *rc::gen::inRange(1, 200);
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  const at::ScalarType type = tests::draw_dtype();
  const Fp8Matrix a = fp8_matrix(uneven(M, K, seed), draw_quantisation()),
                  b = fp8_matrix(uneven(N, K, seed + 1), draw_quantisation());
  const SumBound bound = plain_sums(type);
  const auto check = [](const Fp8Compared& compared) {
    const auto result = compared.close();
    if (!result) RC_FAIL(std::string(result.message()));
  };

  at::Tensor out = at::empty({M, N}, type);
  fp8::gemm(a.given, b.given, out);
  check(compare_fp8(a.exact, b.exact, out, bound));

  const at::Tensor bias = tests::normal({N}, seed + 2, type);
  fp8::gemm(a.given, b.given, out, {}, 1, bias);
  check(compare_fp8(a.exact, b.exact, out, bound, {}, 1, bias));

  const at::Tensor residual = tests::normal({M, N}, seed + 3, type);
  const double beta = *rc::gen::element(1.0, 0.5);
  fp8::gemm(a.given, b.given, out, residual, beta);
  check(compare_fp8(a.exact, b.exact, out, bound, residual, beta));

  const at::Tensor before = out.clone();  // added to itself
  fp8::gemm(a.given, b.given, out, out);
  check(compare_fp8(a.exact, b.exact, out, bound, before));

  out.fill_(std::numeric_limits<double>::quiet_NaN());  // a sum that begins reads nothing
  fp8::gemm(a.given, b.given, out, out, 0);
  check(compare_fp8(a.exact, b.exact, out, bound));
}

TEST(Fp8GemmImpl, ItsFlopsAreCountedAsFp8) {
  const Fp8Matrix a = fp8_matrix(uneven(16, 32, 1), {}), b = fp8_matrix(uneven(48, 32, 2), {});
  const at::Tensor out = at::empty({16, 48});
  const metrics::FlopCounter counter;
  const metrics::FlopScope scope(spec::FlopComponent::down, spec::ExecutedPass::backward);
  at::mm(at::ones({2, 3}), at::ones({3, 5}));
  fp8::gemm(a.given, b.given, out);
  at::mm(at::ones({2, 3}), at::ones({3, 5}));
  const auto fp8 = static_cast<std::int64_t>(2 * 16 * 48 * 32);
  const auto component = static_cast<std::size_t>(spec::FlopComponent::down),
             pass = static_cast<std::size_t>(spec::ExecutedPass::backward);
  EXPECT_EQ(counter.measured().fp8[component][pass], Count(fp8));
  EXPECT_EQ(counter.measured().counts[component][pass], Count(fp8 + 2 * 60));
  metrics::MeasuredFlops twice = counter.measured();
  twice += counter.measured();
  EXPECT_EQ(twice.fp8[component][pass], Count(2 * fp8));
}

TEST(Fp8GemmImpl, TheRecipeIsThatOfTheScales) {
  const auto scaled = [](Scaling scaling) {
    return fp8_matrix(uneven(16, 32, 1), {Format::e4m3, scaling}).given;
  };
  const Quantised tensor = scaled(Scaling::tensor), row = scaled(Scaling::row),
                  token = scaled(Scaling::block_1x128), block = scaled(Scaling::block_128x128),
                  mx = scaled(Scaling::mx_1x32);
  EXPECT_EQ(fp8::recipe_of(tensor, tensor), Recipe::fp8_tensor);
  EXPECT_EQ(fp8::recipe_of(token, block), Recipe::fp8_block);
  EXPECT_EQ(fp8::recipe_of(token, token), Recipe::fp8_block);
  EXPECT_EQ(fp8::recipe_of(mx, mx), Recipe::mxfp8);
  for (const Quantised& other : {tensor, token, mx, row})
    EXPECT_EQ(fp8::recipe_of(row, other), Recipe::none) << to_string(other.scaling);
  EXPECT_EQ(fp8::recipe_of(tensor, block), Recipe::none);
  EXPECT_EQ(fp8::recipe_of(mx, tensor), Recipe::none);
}

TEST(Fp8GemmImpl, CpusComputeEveryRecipe) {
  for (const Recipe recipe : {Recipe::none, Recipe::fp8_tensor, Recipe::fp8_block, Recipe::mxfp8})
    EXPECT_EQ(fp8::refusal(recipe, at::kCPU), "");
}

TEST(Fp8GemmImpl, ARefusalNamesWhatIsNeededWhatIsHereAndTheNearestRecipe) {
  const auto refusal = [](Recipe recipe, const fp8::Machine& machine, const std::set<Recipe>& computed) {
    return fp8::refusal(recipe, machine, [&](Recipe each) { return computed.contains(each); });
  };
  const fp8::Machine h200{.gpu = "NVIDIA H200", .major = 9, .minor = 0, .cublaslt = 130100},
      b200{.gpu = "NVIDIA B200", .major = 10, .minor = 0, .cublaslt = 130100},
      a100{.gpu = "NVIDIA A100", .major = 8, .minor = 0, .cublaslt = 120805};
  const std::set<Recipe> hopper = {Recipe::fp8_tensor, Recipe::fp8_block},
                         blackwell = {Recipe::fp8_tensor, Recipe::mxfp8};
  EXPECT_EQ(refusal(Recipe::fp8_block, h200, hopper), "");
  EXPECT_EQ(refusal(Recipe::none, a100, {}), "");
  EXPECT_EQ(refusal(Recipe::mxfp8, h200, hopper),
            "compute.linear=mxfp8 needs a GPU of compute capability 10.0 or later and cuBLASLt 12.8 or "
            "later; here are NVIDIA H200 of 9.0 and cuBLASLt 13.1; nearest: compute.linear=fp8_block");
  EXPECT_EQ(refusal(Recipe::fp8_block, b200, blackwell),
            "compute.linear=fp8_block needs a GPU of compute capability 9.0 and cuBLASLt 12.9 or later; here "
            "are NVIDIA B200 of 10.0 and cuBLASLt 13.1; nearest: compute.linear=mxfp8");
  EXPECT_EQ(refusal(Recipe::fp8_tensor, a100, {}),
            "compute.linear=fp8_tensor needs a GPU of compute capability 8.9 or later; here are NVIDIA A100 "
            "of 8.0 and cuBLASLt 12.8; nearest: compute.linear=bf16");
}

}  // namespace
}  // namespace assay::impl::fp8_gemm_test
