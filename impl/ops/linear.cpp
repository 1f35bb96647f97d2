#include "impl/ops/linear.hpp"

#include <ATen/ATen.h>

#include "spec/ops/linear.hpp"

namespace assay::impl::linear {

namespace {
void check(const at::Tensor& x, const at::Tensor& weight) {
  spec::linear::check({.N = x.size(0), .in = x.size(1), .out = weight.size(0)}, weight.size(1));
}

void check_upstream(const at::Tensor& dy, std::int64_t N, std::int64_t in, std::int64_t out) {
  spec::linear::check_upstream({.N = N, .in = in, .out = out}, dy.numel());
}

/// bf16 products on the CPU are computed in fp32: exact products, fp32 sums, one rounding at the end, and
/// faster than emulated bf16 kernels on processors without such units.
bool widen(const at::Tensor& x) { return x.is_cpu() && x.scalar_type() == at::kBFloat16; }

at::Tensor wide(const at::Tensor& x) { return x.to(at::kFloat); }
}  // namespace

at::Tensor forward(const at::Tensor& x, const at::Tensor& weight) {
  check(x, weight);
  if (widen(x)) return at::mm(wide(x), wide(weight).t()).to(x.scalar_type());
  return at::mm(x, weight.t());
}

at::Tensor forward_residual(const at::Tensor& residual, const at::Tensor& x, const at::Tensor& weight) {
  check(x, weight);
  check_upstream(residual, x.size(0), x.size(1), weight.size(0));
  if (widen(x)) return wide(residual).addmm_(wide(x), wide(weight).t()).to(x.scalar_type());
  return at::addmm(residual, x, weight.t());
}

at::Tensor backward_input(const at::Tensor& dy, const at::Tensor& weight) {
  check_upstream(dy, dy.size(0), weight.size(1), weight.size(0));
  if (widen(dy)) return at::mm(wide(dy), wide(weight)).to(dy.scalar_type());
  return at::mm(dy, weight);
}

void backward_weight(const at::Tensor& dy, const at::Tensor& x, at::Tensor dweight) {
  check_upstream(dy, x.size(0), dweight.size(1), dweight.size(0));
  check(x, dweight);
  if (dweight.scalar_type() == x.scalar_type()) {
    dweight.addmm_(dy.t(), x);
  } else if (x.is_cpu()) {
    dweight.addmm_(wide(dy).t(), wide(x));
  } else {
    at::addmm_out(dweight, dweight, dy.t(), x, dweight.scalar_type());
  }
}

}  // namespace assay::impl::linear
