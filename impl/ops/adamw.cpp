#include "impl/ops/adamw.hpp"

#include <ATen/ATen.h>

#include <cmath>

#include "impl/ops/tensor_check.hpp"
#include "spec/error.hpp"

namespace assay::impl::adamw {

namespace {
void check(const at::Tensor& weight, const at::Tensor& master, const at::Tensor& gradient,
           const at::Tensor& moment1, const at::Tensor& moment2, const Settings& settings) {
  for (const at::Tensor* other : {&weight, &gradient, &moment1, &moment2})
    require(other->numel() == master.numel() && other->is_contiguous(), "adamw_c1",
            [&] { return describe(*other) + " beside master " + describe(master); });
  for (const at::Tensor* other : {&gradient, &moment1, &moment2})
    require(other->scalar_type() == master.scalar_type(), "adamw_c1",
            [&] { return describe(*other) + " beside master " + describe(master); });
  require(settings.step >= 1, "adamw_c2", [&] { return "step=" + std::to_string(settings.step); });
}
}  // namespace

void update(at::Tensor weight, at::Tensor master, const at::Tensor& gradient, at::Tensor moment1,
            at::Tensor moment2, const Settings& settings) {
  check(weight, master, gradient, moment1, moment2, settings);
  return master.is_cpu() ? cpu::update(weight, master, gradient, moment1, moment2, settings)
                         : aten::update(weight, master, gradient, moment1, moment2, settings);
}

namespace aten {
void update(at::Tensor weight, at::Tensor master, const at::Tensor& gradient, at::Tensor moment1,
            at::Tensor moment2, const Settings& s) {
  const auto step = static_cast<double>(s.step);
  const double correction1 = 1 - std::pow(s.beta1, step), correction2 = 1 - std::pow(s.beta2, step);
  const at::Tensor scaled = gradient * s.gradient_scale;
  moment1.mul_(s.beta1).add_(scaled, 1 - s.beta1);
  moment2.mul_(s.beta2).addcmul_(scaled, scaled, 1 - s.beta2);
  master.mul_(1 - s.learning_rate * s.weight_decay);
  const at::Tensor denominator = moment2.sqrt().div_(std::sqrt(correction2)).add_(s.eps);
  master.addcdiv_(moment1, denominator, -s.learning_rate / correction1);
  if (!weight.is_same(master) && weight.data_ptr() != master.data_ptr()) weight.copy_(master);
}
}  // namespace aten

}  // namespace assay::impl::adamw
