#pragma once
// linear in FP8, its three GEMMs and what they are added to, on any device.
#include <limits>

#include "impl/ops/linear/linear.hpp"
#include "tests/impl/ops/parity/fp8_gemm_parity.hpp"

namespace assay::impl::parity {

using spec::quantise::Recipe;
using spec::quantise::Role;

/// Both orientations of a tensor of the step. Each is quantised on its own, from the values.
struct Fp8Twins {
  Fp8Matrix rows, columns;
  Fp8Twins(const at::Tensor& values, Recipe recipe, Role role)
      : rows(fp8_matrix(values, quantisation(recipe, role))),
        columns(fp8_matrix(values.t(), quantisation(recipe, role))) {}
};

/// Forward alone, with a bias and with a residual, and both gradients, that of the weight begun and
/// continued; `bound` of each GEMM's sums. `use` gets the name of each result and its comparison.
template <class Use>
void fp8_linear_matches_sums(Recipe recipe, std::int64_t N, std::int64_t in, std::int64_t out,
                             at::ScalarType type, at::Device device, std::uint64_t seed,
                             bool fast_accumulation, const SumBound& bound, const Use& use) {
  const Fp8Twins x(uneven(N, in, seed), recipe, Role::activation),
      weight(uneven(out, in, seed + 1), recipe, Role::weight),
      dy(uneven(N, out, seed + 2), recipe, Role::gradient);
  const Quantised x_rows = on(device, x.rows.given), x_columns = on(device, x.columns.given),
                  w_rows = on(device, weight.rows.given), w_columns = on(device, weight.columns.given),
                  dy_rows = on(device, dy.rows.given), dy_columns = on(device, dy.columns.given);
  const auto& a = x.rows.exact;
  const auto& b = weight.rows.exact;
  use("forward", compare_fp8(a, b, linear::forward(x_rows, w_rows, type, {}, fast_accumulation), bound));
  const at::Tensor bias = tests::normal({out}, seed + 3, type),
                   residual = tests::normal({N, out}, seed + 4, type);
  use("forward + bias",
      compare_fp8(a, b, linear::forward(x_rows, w_rows, type, bias.to(device), fast_accumulation), bound, {},
                  1, bias));
  use("residual + forward",
      compare_fp8(a, b, linear::forward_residual(residual.to(device), x_rows, w_rows, fast_accumulation),
                  bound, residual));
  use("dx", compare_fp8(dy.rows.exact, weight.columns.exact,
                        linear::backward_input(dy_rows, w_columns, type, fast_accumulation), bound));
  for (const at::ScalarType sums : {tests::math_of(type), type}) {  // fp32 and bf16 beside bf16
    at::Tensor dweight =
        at::full({out, in}, std::numeric_limits<double>::quiet_NaN(), at::TensorOptions(device).dtype(sums));
    linear::backward_weight(dy_columns, x_columns, dweight, linear::GradientSum::starts, fast_accumulation);
    use("dW =", compare_fp8(dy.columns.exact, x.columns.exact, dweight, bound));
    const at::Tensor before = dweight.cpu().clone();
    linear::backward_weight(dy_columns, x_columns, dweight, linear::GradientSum::continues,
                            fast_accumulation);
    use("dW +=", compare_fp8(dy.columns.exact, x.columns.exact, dweight, bound, before));
  }
}

}  // namespace assay::impl::parity
