#include "impl/ops/linear.hpp"

#include <ATen/ATen.h>

#include "impl/ops/tensor_check.hpp"
#include "spec/error.hpp"

namespace assay::impl::linear {

namespace {
void check(std::int64_t left, std::int64_t right, const at::Tensor& a, const at::Tensor& b) {
  require(left == right, "linear_c1", [&] { return describe(a) + " with " + describe(b); });
}

/// bf16 products on the CPU are computed in fp32: exact products, fp32 sums, one rounding at the end, and
/// faster than emulated bf16 kernels on processors without such units.
bool widen(const at::Tensor& x) { return x.is_cpu() && x.scalar_type() == at::kBFloat16; }

at::Tensor wide(const at::Tensor& x) { return x.to(at::kFloat); }
}  // namespace

at::Tensor forward(const at::Tensor& x, const at::Tensor& weight) {
  check(x.size(1), weight.size(1), x, weight);
  if (widen(x)) return at::mm(wide(x), wide(weight).t()).to(x.scalar_type());
  return at::mm(x, weight.t());
}

at::Tensor forward_residual(const at::Tensor& residual, const at::Tensor& x, const at::Tensor& weight) {
  check(x.size(1), weight.size(1), x, weight);
  require(residual.size(0) == x.size(0) && residual.size(1) == weight.size(0), "linear_c3", [&] {
    return "residual " + describe(residual) + " for x " + describe(x) + ", weight " + describe(weight);
  });
  if (widen(x)) return wide(residual).addmm_(wide(x), wide(weight).t()).to(x.scalar_type());
  return at::addmm(residual, x, weight.t());
}

at::Tensor backward_input(const at::Tensor& dy, const at::Tensor& weight) {
  check(dy.size(1), weight.size(0), dy, weight);
  if (widen(dy)) return at::mm(wide(dy), wide(weight)).to(dy.scalar_type());
  return at::mm(dy, weight);
}

void backward_weight(const at::Tensor& dy, const at::Tensor& x, at::Tensor dweight) {
  check(dy.size(0), x.size(0), dy, x);
  if (dweight.scalar_type() == x.scalar_type()) {
    dweight.addmm_(dy.t(), x);
  } else if (x.is_cpu()) {
    dweight.addmm_(wide(dy).t(), wide(x));
  } else {
    at::addmm_out(dweight, dweight, dy.t(), x, dweight.scalar_type());
  }
}

}  // namespace assay::impl::linear
