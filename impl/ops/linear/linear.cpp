#include "impl/ops/linear/linear.hpp"

#include <ATen/ATen.h>

#include <optional>

#include "impl/metrics/executed_flops.hpp"
#include "impl/metrics/op_times.hpp"
#include "impl/ops/gemm/cuda_gemm.hpp"
#include "impl/ops/gemm/fp8_gemm.hpp"
#include "impl/ops/math_type.hpp"
#include "spec/ops/bias/bias.hpp"
#include "spec/ops/linear/linear.hpp"

namespace assay::impl::linear {

namespace {
void check(const at::Tensor& x, const at::Tensor& weight) {
  spec::linear::check({.N = x.size(0), .in = x.size(1), .out = weight.size(0)}, weight.size(1));
}

void check_upstream(const at::Tensor& dy, std::int64_t N, std::int64_t in, std::int64_t out) {
  spec::linear::check_upstream({.N = N, .in = in, .out = out}, dy.numel());
}

/// bf16 GEMMs on the CPU are computed in fp32: exact products, fp32 sums, one rounding at the end, and
/// faster than emulated bf16 kernels on processors without such units.
bool widen(const at::Tensor& x) { return x.is_cpu() && x.scalar_type() == at::kBFloat16; }

at::Tensor wide(const at::Tensor& x) { return x.to(at::kFloat); }

/// left right + added in one cuBLASLt call; undefined where that has none for these tensors, and then ATen
/// takes over.
at::Tensor by_library(const cuda::Gemm& gemm, std::int64_t rows, std::int64_t columns,
                      const at::Tensor& added = {}, std::optional<at::ScalarType> type = {}) {
  const at::Tensor &left = gemm.left.matrix, &right = gemm.right.matrix;
  if (!left.is_cuda() || !left.is_contiguous() || !right.is_contiguous()) return {};
  at::Tensor out = at::empty({rows, columns}, left.options().dtype(type.value_or(left.scalar_type())));
  return cuda::multiply(gemm, out, added) ? out : at::Tensor();
}
}  // namespace

at::Tensor forward(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  const metrics::OpScope timed(spec::time::StepPass::forward);
  check(x, weight);
  if (bias.defined()) spec::bias::check({.N = x.size(0), .out = weight.size(0)}, bias.numel());
  if (widen(x)) {
    const at::Tensor left = wide(x), right = wide(weight);
    if (!bias.defined()) return at::mm(left, right.t()).to(x.scalar_type());
    at::Tensor y = at::empty({x.size(0), weight.size(0)}, left.options());
    return y.copy_(bias.expand_as(y)).addmm_(left, right.t()).to(x.scalar_type());
  }
  at::Tensor y = by_library({.left = {x}, .right = {weight, true}, .bias = bias}, x.size(0), weight.size(0));
  if (y.defined()) return y;
  if (!bias.defined()) return at::mm(x, weight.t());
  // The bias as a residual, which is added before the one rounding.
  return x.is_cuda() ? forward_residual(bias.expand({x.size(0), bias.size(0)}).contiguous(), x, weight)
                     : at::addmm(bias, x, weight.t());
}

at::Tensor forward_wide(const at::Tensor& x, const at::Tensor& weight) {
  const metrics::OpScope timed(spec::time::StepPass::forward);
  check(x, weight);
  const at::ScalarType type = math_type(x.scalar_type());
  const at::Tensor y =
      by_library({.left = {x}, .right = {weight, true}}, x.size(0), weight.size(0), {}, type);
  return y.defined() ? y : at::mm(x.to(type), weight.to(type).t());
}

at::Tensor forward_residual(const at::Tensor& residual, const at::Tensor& x, const at::Tensor& weight) {
  const metrics::OpScope timed(spec::time::StepPass::forward);
  check(x, weight);
  check_upstream(residual, x.size(0), x.size(1), weight.size(0));
  if (widen(x)) return wide(residual).addmm_(wide(x), wide(weight).t()).to(x.scalar_type());
  const at::Tensor y = residual.is_contiguous() ? by_library({.left = {x}, .right = {weight, true}},
                                                             x.size(0), weight.size(0), residual)
                                                : at::Tensor();
  return y.defined() ? y : at::addmm(residual, x, weight.t());
}

at::Tensor backward_input(const at::Tensor& dy, const at::Tensor& weight) {
  const metrics::OpScope timed(spec::time::StepPass::input_gradient);
  const metrics::FlopScope scope(spec::ExecutedPass::backward);
  check_upstream(dy, dy.size(0), weight.size(1), weight.size(0));
  if (widen(dy)) return at::mm(wide(dy), wide(weight)).to(dy.scalar_type());
  const at::Tensor dx = by_library({.left = {dy}, .right = {weight}}, dy.size(0), weight.size(1));
  return dx.defined() ? dx : at::mm(dy, weight);
}

void backward_weight(const at::Tensor& dy, const at::Tensor& x, at::Tensor dweight, GradientSum sum) {
  const metrics::OpScope timed(spec::time::StepPass::weight_gradient);
  const metrics::FlopScope scope(spec::ExecutedPass::backward);
  check_upstream(dy, x.size(0), dweight.size(1), dweight.size(0));
  check(x, dweight);
  const int beta = sum == GradientSum::starts ? 0 : 1;
  const bool in_order = dy.is_contiguous() && x.is_contiguous() && dweight.is_contiguous();
  if (dy.is_cuda() && in_order && cuda::multiply({.left = {dy, true}, .right = {x}}, dweight, dweight, beta))
    return;
  if (dweight.scalar_type() == x.scalar_type()) {
    dweight.addmm_(dy.t(), x, beta);
  } else {
    dweight.addmm_(wide(dy).t(), wide(x), beta);
  }
}

namespace {
/// Of a linear whose operands are quantised; `a` and `b` are those of one of its GEMMs.
void check_recipe(const Quantised& a, const Quantised& b, std::int64_t N, std::int64_t in, std::int64_t out) {
  spec::quantise::check(fp8::recipe_of(a, b), N, in, out);
}

at::Tensor matrix(const Quantised& rows, const Quantised& columns, at::ScalarType type) {
  return at::empty({rows.rows(), columns.rows()}, rows.codes.options().dtype(type));
}
}  // namespace

at::Tensor forward(const Quantised& x, const Quantised& weight, at::ScalarType type, const at::Tensor& bias,
                   bool fast_accumulation) {
  const metrics::OpScope timed(spec::time::StepPass::forward);
  check(x.codes, weight.codes);
  if (bias.defined()) spec::bias::check({.N = x.rows(), .out = weight.rows()}, bias.numel());
  check_recipe(x, weight, x.rows(), x.columns(), weight.rows());
  at::Tensor y = matrix(x, weight, type);
  fp8::gemm(x, weight, y, {}, 1, bias, fast_accumulation);
  return y;
}

at::Tensor forward_residual(const at::Tensor& residual, const Quantised& x, const Quantised& weight,
                            bool fast_accumulation) {
  const metrics::OpScope timed(spec::time::StepPass::forward);
  check(x.codes, weight.codes);
  check_upstream(residual, x.rows(), x.columns(), weight.rows());
  check_recipe(x, weight, x.rows(), x.columns(), weight.rows());
  at::Tensor y = matrix(x, weight, residual.scalar_type());
  fp8::gemm(x, weight, y, residual, 1, {}, fast_accumulation);
  return y;
}

at::Tensor backward_input(const Quantised& dy, const Quantised& weight_columns, at::ScalarType type,
                          bool fast_accumulation) {
  const metrics::OpScope timed(spec::time::StepPass::input_gradient);
  const metrics::FlopScope scope(spec::ExecutedPass::backward);
  const std::int64_t N = dy.rows(), in = weight_columns.rows(), out = weight_columns.columns();
  check_upstream(dy.codes, N, in, out);
  check_recipe(dy, weight_columns, N, in, out);
  at::Tensor dx = matrix(dy, weight_columns, type);
  fp8::gemm(dy, weight_columns, dx, {}, 1, {}, fast_accumulation);
  return dx;
}

void backward_weight(const Quantised& dy_columns, const Quantised& x_columns, at::Tensor dweight,
                     GradientSum sum, bool fast_accumulation) {
  const metrics::OpScope timed(spec::time::StepPass::weight_gradient);
  const metrics::FlopScope scope(spec::ExecutedPass::backward);
  const std::int64_t N = x_columns.columns(), in = dweight.size(1), out = dweight.size(0);
  check_upstream(dy_columns.codes, N, in, out);
  spec::linear::check({.N = N, .in = x_columns.rows(), .out = out}, in);
  check_recipe(dy_columns, x_columns, N, in, out);
  fp8::gemm(dy_columns, x_columns, dweight, dweight, sum == GradientSum::starts ? 0 : 1, {},
            fast_accumulation);
}

}  // namespace assay::impl::linear
