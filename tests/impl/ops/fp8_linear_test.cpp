// labels: parity property
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>

#include "impl/metrics/executed_flops.hpp"
#include "tests/impl/ops/parity/fp8_linear_parity.hpp"

namespace assay::impl::fp8_linear_test {
namespace {

using namespace parity;

constexpr Recipe recipes[] = {Recipe::fp8_tensor, Recipe::fp8_block, Recipe::mxfp8};

std::int64_t unit_of(Recipe recipe) {
  return recipe == Recipe::fp8_block ? 128 : recipe == Recipe::mxfp8 ? 32 : 16;
}

RC_GTEST_PROP(Fp8LinearImpl, EachGemmSumsItsOwnQuantisedOperands, ()) {
  const Recipe recipe = *rc::gen::elementOf(std::vector<Recipe>(std::begin(recipes), std::end(recipes)));
  std::array<std::int64_t, 3> extents;
  extents.fill(unit_of(recipe));
  extents.at(*rc::gen::inRange<std::size_t>(0, 3)) *= 2;
  const auto [N, in, out] = extents;
  const at::ScalarType type = tests::draw_dtype();
  fp8_linear_matches_sums(recipe, N, in, out, type, at::kCPU, *rc::gen::arbitrary<std::uint64_t>(),
                          *rc::gen::arbitrary<bool>(), plain_sums(type),
                          [](const char* name, const Fp8Compared& compared) {
                            const auto result = compared.close();
                            if (!result) RC_FAIL(std::string(name) + ": " + result.message());
                          });
}

/// Codes of zeros, scaled by the recipe.
Quantised zeros(Recipe recipe, Role role, std::int64_t rows, std::int64_t columns) {
  return fp8_matrix(at::zeros({rows, columns}), quantisation(recipe, role)).given;
}

TEST(Fp8LinearImpl, ExtentsThatTheRecipeDoesNotTakeAreRefused) {
  for (const Recipe recipe : recipes) {
    const std::int64_t good = unit_of(recipe), bad = good + 8;
    for (const auto& [N, in, out] : std::vector<std::tuple<std::int64_t, std::int64_t, std::int64_t>>{
             {bad, good, good}, {good, bad, good}, {good, good, bad}}) {
      const Quantised x = zeros(recipe, Role::activation, N, in),
                      x_t = zeros(recipe, Role::activation, in, N), w = zeros(recipe, Role::weight, out, in),
                      w_t = zeros(recipe, Role::weight, in, out), dy = zeros(recipe, Role::gradient, N, out),
                      dy_t = zeros(recipe, Role::gradient, out, N);
      EXPECT_EQ(tests::refusal([&] { linear::forward(x, w, at::kFloat); }), "quantise_c3");
      EXPECT_EQ(tests::refusal([&] { linear::forward_residual(at::zeros({N, out}), x, w); }), "quantise_c3");
      EXPECT_EQ(tests::refusal([&] { linear::backward_input(dy, w_t, at::kFloat); }), "quantise_c3");
      EXPECT_EQ(tests::refusal([&] {
                  linear::backward_weight(dy_t, x_t, at::zeros({out, in}));
                }),
                "quantise_c3");
    }
  }
}

TEST(Fp8LinearImpl, ShapesThatDoNotFitAreRefused) {
  const auto matrix = [](std::int64_t rows, std::int64_t columns) {
    return zeros(Recipe::fp8_tensor, Role::activation, rows, columns);
  };
  EXPECT_EQ(tests::refusal([&] { linear::forward(matrix(16, 32), matrix(48, 16), at::kFloat); }),
            "linear_c1");
  EXPECT_EQ(
      tests::refusal([&] { linear::forward(matrix(16, 32), matrix(48, 32), at::kFloat, at::zeros({47})); }),
      "bias_c1");
  EXPECT_EQ(tests::refusal([&] {
              linear::forward_residual(at::zeros({16, 32}), matrix(16, 32), matrix(48, 32));
            }),
            "linear_c3");
  EXPECT_EQ(tests::refusal([&] { linear::backward_input(matrix(16, 32), matrix(16, 48), at::kFloat); }),
            "linear_c3");
  EXPECT_EQ(tests::refusal([&] {
              linear::backward_weight(matrix(32, 16), matrix(48, 32), at::zeros({32, 48}));
            }),
            "linear_c3");
  EXPECT_EQ(tests::refusal([&] {
              linear::backward_weight(matrix(32, 16), matrix(16, 16), at::zeros({32, 48}));
            }),
            "linear_c1");
}

TEST(Fp8LinearImpl, FlopsAreThoseOfLinearAndAllInFp8) {
  const std::int64_t N = 16, in = 32, out = 48, each = 2 * N * in * out;
  const auto matrix = [](std::int64_t rows, std::int64_t columns) {
    return zeros(Recipe::fp8_tensor, Role::activation, rows, columns);
  };
  const metrics::FlopCounter counter;
  const metrics::FlopScope scope(spec::FlopComponent::down);
  linear::forward(matrix(N, in), matrix(out, in), at::kFloat);
  linear::backward_input(matrix(N, out), matrix(in, out), at::kFloat);
  linear::backward_weight(matrix(out, N), matrix(in, N), at::zeros({out, in}));
  const auto of = [&](const metrics::MeasuredFlops::Table& table, spec::ExecutedPass pass) {
    return table[static_cast<std::size_t>(spec::FlopComponent::down)][static_cast<std::size_t>(pass)];
  };
  for (const auto& table : {counter.measured().counts, counter.measured().fp8}) {
    EXPECT_EQ(of(table, spec::ExecutedPass::forward), Count(each));
    EXPECT_EQ(of(table, spec::ExecutedPass::backward), Count(2 * each));
  }
}

}  // namespace
}  // namespace assay::impl::fp8_linear_test
