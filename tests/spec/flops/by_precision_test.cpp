// labels: unit property
#include "spec/flops/by_precision.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "spec/error.hpp"
#include "spec/flops/exact.hpp"
#include "spec/metrics/metrics.hpp"
#include "tests/support/draw_model.hpp"

namespace assay::spec::by_precision_test {
namespace {

using quantise::Recipe;

Count total(const FlopsByPrecision& flops) {
  Count sum;
  for (const auto& [precision, count] : flops) sum += count;
  return sum;
}

/// `unquantised`: layers, from 0.
LinearPrecision precision(Recipe recipe, const std::vector<std::int64_t>& unquantised) {
  LinearPrecision out{.recipe = recipe};
  for (const std::int64_t layer : unquantised) out.unquantised.push_back(layer + 1);
  return out;
}

FlopsByPrecision llama3_8b(Recipe recipe, const std::vector<std::int64_t>& unquantised = {}) {
  return exact_flops_by_precision(find_model("llama3-8b"), 4096, Precision::bf16,
                                  precision(recipe, unquantised));
}

/// The list of a block's matrices against the closed formula's components.
RC_GTEST_PROP(FlopsByPrecisionSpec, AreThoseOfTheComponentsOfBlockLinears, ()) {
  const ModelSpec model = tests::draw_trainable_model();
  const std::int64_t T = *rc::gen::inRange<std::int64_t>(1, 50);
  const FlopBreakdown exact = exact_flops(model, T);
  using enum FlopComponent;
  Count linears;
  for (const FlopComponent component : {qkv, latent_projections, attention_output, gate_up, down})
    linears += exact.of(component);
  LinearPrecision linear = precision(Recipe::fp8_tensor, {});
  RC_ASSERT(exact_flops_by_precision(model, T, Precision::bf16, linear).at(Precision::fp8) == linears);
  linear.experts = true;
  linears += 2 * exact.of(routed_experts).divided_exactly_by(3);
  RC_ASSERT(exact_flops_by_precision(model, T, Precision::bf16, linear).at(Precision::fp8) == linears);
}

TEST(FlopsByPrecisionSpec, CountsLlama3ByHand) {
  // The matrices of a block: q 4096^2, k and v 4096 * 1024 each, o 4096^2, three of 4096 * 14336.
  const Count block = 2 * Count(4096) * 4096 + 2 * Count(4096) * 1024 + 3 * Count(4096) * 14336;
  const Count head_and_attention = 6 * Count(128256) * 4096 + 6 * 32 * Count(4096) * 4097;
  const auto all = llama3_8b(Recipe::fp8_tensor);
  EXPECT_EQ(all.at(Precision::fp8), 4096 * (32 * (6 * block)));
  EXPECT_EQ(all.at(Precision::bf16), 4096 * head_and_attention);
  const auto without_ends = llama3_8b(Recipe::fp8_block, {0, 31});
  EXPECT_EQ(without_ends.at(Precision::fp8), 4096 * (30 * (6 * block)));
  EXPECT_EQ(without_ends.at(Precision::bf16), 4096 * (head_and_attention + 2 * (6 * block)));
}

TEST(FlopsByPrecisionSpec, WithoutARecipeAllOfItIsInTheComputePrecision) {
  EXPECT_EQ(llama3_8b(Recipe::none),
            (FlopsByPrecision{{Precision::bf16, exact_flops(find_model("llama3-8b"), 4096).per_sequence()}}));
}

TEST(FlopsByPrecisionSpec, ALayerLeftOutTakesItsKindOfMlpWithIt) {
  // DeepSeek-V3: layers 0 to 2 are dense, the others sparse.
  const ModelSpec model = find_model("deepseek-v3");
  const auto fp8 = [&](const std::vector<std::int64_t>& unquantised) {
    return exact_flops_by_precision(model, 4096, Precision::bf16, precision(Recipe::fp8_block, unquantised))
        .at(Precision::fp8);
  };
  const Count latent =
      Count(7168) * 1536 + Count(1536) * 128 * 192 + Count(7168) * 576 + Count(512) * 128 * 256;
  const Count attention = latent + Count(128) * 128 * 7168;
  const Count dense = 3 * Count(7168) * 18432;  // experts are in bf16
  EXPECT_EQ(fp8({}), 6 * 4096 * (61 * attention + 3 * dense));
  EXPECT_EQ(fp8({0}), 6 * 4096 * (60 * attention + 2 * dense));
  EXPECT_EQ(fp8({60}), 6 * 4096 * (60 * attention + 3 * dense));
}

/// Of mixtral-8x7b's two active experts of 32 layers forward and the inputs' gradients are in FP8, 4 of 6
/// FLOPs a weight and token; of a layer left out none.
TEST(FlopsByPrecisionSpec, OfRoutedExpertsTwoThirdsAreInFp8) {
  const ModelSpec model = find_model("mixtral-8x7b");
  const Count attention = 2 * Count(4096) * 4096 + 2 * Count(4096) * 1024,
              experts = 2 * 3 * Count(4096) * 14336;
  LinearPrecision linear = precision(Recipe::fp8_tensor, {});
  linear.experts = true;
  EXPECT_EQ(exact_flops_by_precision(model, 4096, Precision::bf16, linear).at(Precision::fp8),
            4096 * (32 * (6 * attention + 4 * experts)));
  linear.unquantised = {1};
  EXPECT_EQ(exact_flops_by_precision(model, 4096, Precision::bf16, linear).at(Precision::fp8),
            4096 * (31 * (6 * attention + 4 * experts)));
}

RC_GTEST_PROP(FlopsByPrecisionSpec, PartsAddUpToTheExactCount, ()) {
  const ModelSpec model = tests::draw_described_model();
  const auto T = *rc::gen::inRange<std::int64_t>(1, 300);
  std::vector<std::int64_t> unquantised;
  for (std::int64_t layer = 0; layer < model.layers; ++layer)
    if (*rc::gen::arbitrary<bool>()) unquantised.push_back(layer);
  const auto flops =
      exact_flops_by_precision(model, T, Precision::bf16, precision(Recipe::mxfp8, unquantised));
  RC_ASSERT(total(flops) == exact_flops(model, T).per_sequence());
  RC_ASSERT(flops.contains(Precision::fp8) == (static_cast<std::int64_t>(unquantised.size()) < model.layers));
}

TEST(FlopsByPrecisionSpec, MfuOfAMixIsTimeAtPeakOverTime) {
  // The example of the page.
  const Gpu& gpu = named_gpu("h100-sxm");
  const auto flops = llama3_8b(Recipe::fp8_tensor);
  const double peak = mixed_peak(gpu, flops);
  EXPECT_NEAR(peak, 1747.963e12, 1e9);
  EXPECT_NEAR(mixed_peak(gpu, llama3_8b(Recipe::fp8_tensor, {0, 31})), 1668.034e12, 1e9);
  const double per_token = total(flops).to_double() / 4096;
  EXPECT_NEAR(metrics::mfu(per_token, 18000, peak, 1), 0.496864, 1e-6);
  const double seconds =
      (flops.at(Precision::fp8).to_double() / 1978.9e12 + flops.at(Precision::bf16).to_double() / 989.4e12) /
      4096;
  EXPECT_NEAR(metrics::mfu(per_token, 0.999 / seconds, peak, 1), 0.999, 1e-12);
  EXPECT_THROW(metrics::mfu(per_token, 1.001 / seconds, peak, 1), SpecError);
}

TEST(FlopsByPrecisionSpec, OnePrecisionHasItsOwnPeak) {
  EXPECT_DOUBLE_EQ(mixed_peak(named_gpu("h200-sxm"), {{Precision::bf16, 7}}), 989.5e12);
  EXPECT_DOUBLE_EQ(mixed_peak(named_gpu("h200-sxm"), {{Precision::fp8, 7}}), 1979e12);
  EXPECT_DOUBLE_EQ(mixed_peak(named_gpu("b200"), {{Precision::fp8, 7}}), 4500e12);
}

TEST(FlopsByPrecisionSpec, AGpuWithoutFp8HasNoMfuInIt) {
  const auto flops = llama3_8b(Recipe::fp8_tensor);
  EXPECT_EQ(dense_peak(find_gpu("NVIDIA A100-SXM4-80GB"), flops), std::nullopt);
  EXPECT_TRUE(dense_peak(find_gpu("NVIDIA A100-SXM4-80GB"), llama3_8b(Recipe::none)));
  EXPECT_DOUBLE_EQ(*dense_peak(find_gpu("NVIDIA H100 80GB HBM3"), flops),
                   mixed_peak(named_gpu("h100-sxm"), flops));
  EXPECT_EQ(dense_peak(find_gpu("H100"), flops), std::nullopt);  // SXM, PCIe or NVL
  try {
    mixed_peak(named_gpu("a100-sxm-80gb"), flops);
    FAIL() << "accepted";
  } catch (const UserError& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_STREQ(
        error.what(),
        "NVIDIA A100 SXM 80GB has no fp8 peak in spec/hardware/a100-sxm-80gb.toml, so a run that computes in "
        "fp8 has no MFU there; take a precision that the GPU has");
  }
}

TEST(FlopsByPrecisionSpec, C1RejectsALayerThatTheModelLacksAndOneNamedTwice) {
  for (const std::vector<std::int64_t>& layers : {std::vector<std::int64_t>{32}, {-1}, {3, 3}}) {
    try {
      llama3_8b(Recipe::fp8_tensor, layers);
      FAIL() << "accepted";
    } catch (const SpecError& error) {
      EXPECT_EQ(error.label(), "by_precision_c1");
    }
  }
}

TEST(FlopsByPrecisionSpec, C2RejectsAMixOfNothing) {
  EXPECT_THROW(mixed_peak(named_gpu("b200"), {}), SpecError);
}

}  // namespace
}  // namespace assay::spec::by_precision_test
