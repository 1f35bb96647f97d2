#include "impl/ops/grouped_linear/grouped_linear.hpp"

#include <ATen/ATen.h>

#include "impl/metrics/executed_flops.hpp"
#include "impl/metrics/op_times.hpp"
#include "impl/ops/grouped_linear/grouped_gemm.hpp"
#include "impl/ops/math_type.hpp"
#include "impl/ops/tensor_check.hpp"

namespace assay::impl::grouped_linear {

using quantise::Quantised;
using spec::time::StepPass;

bool rows_known_on_device_alone(at::Device device, at::ScalarType type, std::int64_t in, std::int64_t out) {
  return device.is_cuda() && type == at::kBFloat16 && in % 8 == 0 && out % 8 == 0;
}

namespace {

void check(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& ends, std::int64_t inner) {
  TORCH_CHECK(x.dim() == 2 && weight.dim() == 2 && ends.dim() == 1 && ends.scalar_type() == at::kInt &&
                  weight.size(0) % ends.size(0) == 0 && x.size(1) == inner,
              "grouped_linear: rows ", describe(x), ", weights ", describe(weight), ", ends ",
              describe(ends));
  check_contiguous("grouped_linear", {x, weight, ends});
}

/// [X out, in] as [X, out, in].
at::Tensor by_expert(const at::Tensor& weight, const at::Tensor& ends) {
  return weight.view({ends.size(0), -1, weight.size(1)});
}

/// As wide as sums are: bf16 GEMMs on a CPU are computed in fp32, as those of a linear.
at::Tensor wide(const at::Tensor& x) { return x.to(math_type(x.scalar_type())); }

/// Calls body(expert, first row, rows) for each expert, those without rows as well.
template <class Body>
void for_groups(const at::Tensor& ends, const Body& body) {
  const at::Tensor on_host = ends.cpu();
  const auto* end = on_host.const_data_ptr<std::int32_t>();
  for (std::int64_t e = 0, begin = 0; e < ends.size(0); begin = end[e++]) body(e, begin, end[e] - begin);
}

bool by_library(const at::Tensor& x, std::int64_t in, std::int64_t out) {
  return rows_known_on_device_alone(x.device(), x.scalar_type(), in, out) && x.size(0) > 0;
}

/// [R, outer]: x[rows of e] right[e] for each expert; right [X, inner, outer].
at::Tensor by_groups(const at::Tensor& x, const at::Tensor& right, const at::Tensor& ends) {
  at::Tensor y = at::empty({x.size(0), right.size(2)}, x.options());
  for_groups(ends, [&](std::int64_t e, std::int64_t begin, std::int64_t rows) {
    if (rows == 0) return;
    at::Tensor part_of_y = y.narrow(0, begin, rows);
    at::mm_out(part_of_y, x.narrow(0, begin, rows), right[e]);
  });
  return y;
}

at::Tensor multiply(cuda::Part part, const at::Tensor& x, const at::Tensor& weight, const at::Tensor& ends) {
  const auto of_pass = [&](const at::Tensor& matrix) {
    const at::Tensor right = by_expert(matrix, ends);
    return part == cuda::Part::forward ? right.transpose(1, 2) : right;
  };
  const std::int64_t outer = of_pass(weight).size(2);
  if (by_library(x, x.size(1), outer)) {
    at::Tensor y = at::empty({x.size(0), outer}, x.options());
    return cuda::multiply(part, x, weight, ends, y) ? y : at::_grouped_mm(x, of_pass(weight), ends);
  }
  return by_groups(x.is_cpu() ? wide(x) : x, of_pass(x.is_cpu() ? wide(weight) : weight), ends)
      .to(x.scalar_type());
}

at::Tensor multiply(cuda::Part part, const Quantised& left, const Quantised& right, const at::Tensor& ends,
                    at::ScalarType type) {
  const bool forward = part == cuda::Part::forward;
  const std::int64_t in = right.columns() / (forward ? 1 : ends.size(0)), X = ends.size(0);
  TORCH_CHECK(left.scaling == quantise::Scaling::tensor && right.scaling == quantise::Scaling::tensor &&
                  left.columns() == in && (forward ? right.rows() : right.columns()) % X == 0,
              "grouped_linear in FP8: rows ", describe(left.codes), ", weights ", describe(right.codes),
              ", ends ", describe(ends));
  const std::int64_t outer = forward ? right.rows() / X : right.rows();
  const metrics::Fp8Scope counted;
  at::Tensor y = at::empty({left.rows(), outer}, left.codes.options().dtype(type));
  if (left.rows() == 0) return y;
  if (y.is_cuda() && type == at::kBFloat16 && in % 16 == 0 && outer % 16 == 0 &&
      cuda::multiply(part, left, right, ends, y))
    return y;
  const at::ScalarType values_type = left.codes.is_cpu() ? math_type(type) : type;
  const at::Tensor values = quantise::dequantise(left, values_type),
                   weights = quantise::dequantise(right, values_type),
                   by_expert = forward ? weights.view({X, outer, in}).transpose(1, 2)
                                       : weights.view({outer, X, in}).permute({1, 2, 0});
  return y.copy_(by_groups(values, by_expert, ends));
}

}  // namespace

at::Tensor forward(const Quantised& x, const Quantised& weight, const at::Tensor& ends, at::ScalarType type) {
  const metrics::OpScope timed(StepPass::forward);
  return multiply(cuda::Part::forward, x, weight, ends, type);
}

at::Tensor backward_input(const Quantised& dy, const Quantised& transposed, const at::Tensor& ends,
                          at::ScalarType type) {
  const metrics::OpScope timed(StepPass::input_gradient);
  const metrics::FlopScope scope(spec::ExecutedPass::backward);
  return multiply(cuda::Part::input_gradient, dy, transposed, ends, type);
}

at::Tensor forward(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& ends) {
  const metrics::OpScope timed(StepPass::forward);
  check(x, weight, ends, weight.size(1));
  return multiply(cuda::Part::forward, x, weight, ends);
}

at::Tensor backward_input(const at::Tensor& dy, const at::Tensor& weight, const at::Tensor& ends) {
  const metrics::OpScope timed(StepPass::input_gradient);
  const metrics::FlopScope scope(spec::ExecutedPass::backward);
  check(dy, weight, ends, weight.size(0) / ends.size(0));
  return multiply(cuda::Part::input_gradient, dy, weight, ends);
}

void backward_weight(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& ends, at::Tensor dweight,
                     linear::GradientSum sum) {
  const metrics::OpScope timed(StepPass::weight_gradient);
  const metrics::FlopScope scope(spec::ExecutedPass::backward);
  check(dy, dweight, ends, dweight.size(0) / ends.size(0));
  check(x, dweight, ends, dweight.size(1));
  const at::Tensor into = by_expert(dweight, ends);
  if (by_library(x, dy.size(1), x.size(1))) {
    if (cuda::multiply(cuda::Part::weight_gradient, dy, x, ends, dweight,
                       sum == linear::GradientSum::continues))
      return;
    const at::Tensor own = at::_grouped_mm(dy.t(), x, ends);
    sum == linear::GradientSum::starts ? into.copy_(own) : into.add_(own);
    return;
  }
  const at::Tensor left = wide(dy), right = wide(x);
  const int beta = sum == linear::GradientSum::starts ? 0 : 1;
  for_groups(ends, [&](std::int64_t e, std::int64_t begin, std::int64_t rows) {
    if (rows > 0)
      into[e].addmm_(left.narrow(0, begin, rows).t(), right.narrow(0, begin, rows), beta);
    else if (beta == 0)
      into[e].zero_();
  });
}

}  // namespace assay::impl::grouped_linear
