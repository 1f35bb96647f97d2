#include "impl/ops/adamw/adamw.hpp"

#include <ATen/ATen.h>

#include <cmath>

#include "impl/metrics/op_times.hpp"
#include "impl/ops/tensor_check.hpp"
#include "spec/ops/adamw/adamw_rounding.hpp"

namespace assay::impl::adamw {

namespace {
void check(const at::Tensor& weight, const at::Tensor& master, const at::Tensor& gradient,
           const at::Tensor& moment1, const at::Tensor& moment2) {
  using spec::adamw::check_entries;
  check_entries("weight", weight.numel(), master.numel());
  check_entries("gradient", gradient.numel(), master.numel());
  check_entries("moment1", moment1.numel(), master.numel());
  check_entries("moment2", moment2.numel(), master.numel());
}
}  // namespace

spec::adamw::Scalars scalars(const Settings& s) {
  return spec::adamw::scalars({.learning_rate = s.learning_rate,
                               .beta1 = s.beta1,
                               .beta2 = s.beta2,
                               .eps = s.eps,
                               .weight_decay = s.weight_decay,
                               .step = s.step});
}

StepNumbers step_numbers(const Settings& settings, bool rounds) {
  const auto shared = scalars(settings);
  if (rounds) spec::adamw::rounding_stream(settings.seed, settings.step);
  return {shared.kept, shared.step_size, shared.root_correction2, static_cast<double>(settings.step)};
}

void update(at::Tensor weight, at::Tensor master, const at::Tensor& gradient, at::Tensor moment1,
            at::Tensor moment2, const Settings& settings) {
  const metrics::OpScope timed(spec::time::StepOp::adamw, spec::time::StepPass::update);
  check(weight, master, gradient, moment1, moment2);
  check_contiguous("adamw", {weight, master, gradient, moment1, moment2});
  return master.is_cpu() ? cpu::update(weight, master, gradient, moment1, moment2, settings)
                         : cuda::update(weight, master, gradient, moment1, moment2, settings);
}

void update_guarded(at::Tensor weight, at::Tensor master, const at::Tensor& gradient, at::Tensor moment1,
                    at::Tensor moment2, const Settings& settings, const at::Tensor& coefficient,
                    const at::Tensor& numbers) {
  const metrics::OpScope timed(spec::time::StepOp::adamw, spec::time::StepPass::update);
  check(weight, master, gradient, moment1, moment2);
  check_contiguous("adamw", {weight, master, gradient, moment1, moment2, numbers});
  TORCH_CHECK(!numbers.defined() || (numbers.scalar_type() == at::kDouble && numbers.numel() == 4 &&
                                     numbers.device().type() == master.device().type()),
              "adamw: the numbers of a step are four in fp64, beside the states");
  if (master.is_cuda())
    return cuda::update_guarded(weight, master, gradient, moment1, moment2, settings, coefficient, numbers);
  Settings scaled = settings;
  scaled.gradient_scale = coefficient.item<double>();
  if (std::isnan(scaled.gradient_scale)) return;
  if (!numbers.defined()) return cpu::update(weight, master, gradient, moment1, moment2, scaled);
  const double* number = numbers.const_data_ptr<double>();
  scaled.step = static_cast<std::int64_t>(number[3]);
  cpu::update_by({number[0], number[1], number[2]}, weight, master, gradient, moment1, moment2, scaled);
}

namespace aten {
void update(at::Tensor weight, at::Tensor master, const at::Tensor& gradient, at::Tensor moment1,
            at::Tensor moment2, const Settings& s) {
  const auto [kept, step_size, root_correction2] = scalars(s);
  const at::Tensor scaled = gradient * s.gradient_scale;
  moment1.lerp_(scaled, 1 - s.beta1);
  moment2.mul_(s.beta2).addcmul_(scaled, scaled, 1 - s.beta2);
  master.mul_(kept);
  master.addcdiv_(moment1, moment2.sqrt().div_(root_correction2).add_(s.eps), -step_size);
  if (!weight.is_same(master) && weight.data_ptr() != master.data_ptr()) weight.copy_(master);
}
}  // namespace aten

}  // namespace assay::impl::adamw
