#include <ATen/ATen.h>

#include "impl/ops/adamw/adamw.hpp"
#include "impl/ops/adamw/adamw_launch.hpp"
#include "impl/ops/cuda_tensor.hpp"
#include "spec/ops/adamw/adamw_rounding.hpp"

namespace assay::impl::adamw::cuda {

void update_guarded(at::Tensor weight, at::Tensor master, const at::Tensor& gradient, at::Tensor moment1,
                    at::Tensor moment2, const Settings& settings, const at::Tensor& coefficient,
                    const at::Tensor& numbers) {
  const auto shared = scalars(settings);
  if (master.scalar_type() == at::kBFloat16) spec::adamw::rounding_stream(settings.seed, settings.step);
  launch({.weight_dtype = impl::cuda::dtype_of(weight),
          .state_dtype = impl::cuda::dtype_of(master),
          .n = master.numel(),
          .weight = weight.data_ptr(),
          .master = master.data_ptr(),
          .gradient = gradient.const_data_ptr(),
          .moment1 = moment1.data_ptr(),
          .moment2 = moment2.data_ptr(),
          .beta1 = settings.beta1,
          .beta2 = settings.beta2,
          .eps = settings.eps,
          .gradient_scale = settings.gradient_scale,
          .coefficient = coefficient.defined() ? coefficient.const_data_ptr<double>() : nullptr,
          .numbers = numbers.defined() ? numbers.const_data_ptr<double>() : nullptr,
          .decay = shared.kept,
          .step_size = shared.step_size,
          .root_correction = shared.root_correction2,
          .seed = settings.seed,
          .step = static_cast<std::uint32_t>(settings.step),
          .first = static_cast<std::uint64_t>(settings.first)},
         impl::cuda::stream());
}

void update(at::Tensor weight, at::Tensor master, const at::Tensor& gradient, at::Tensor moment1,
            at::Tensor moment2, const Settings& settings) {
  cuda::update_guarded(weight, master, gradient, moment1, moment2, settings, {}, {});
}

}  // namespace assay::impl::adamw::cuda
