#pragma once
#include <ATen/core/Tensor.h>

#include <array>

#include "spec/ops/adamw/adamw.hpp"

namespace assay::impl::adamw {

/// Hyperparameters of one update. [spec/ops/adamw/adamw.md]
struct Settings {
  double learning_rate;
  double beta1, beta2, eps;
  double weight_decay;     ///< decoupled; 0 for gains
  std::int64_t step;       ///< counts from 1
  double gradient_scale;   ///< clip coefficient, applied to the gradient as it is read
  std::uint64_t seed = 0;  ///< of the roundings of bf16 states
  std::int64_t first = 0;  ///< number of the range's first entry in the flat buffer, which chooses their bits
};

/// What all entries of a step share. Errors: SpecError adamw_c2 .. adamw_c6.
spec::adamw::Scalars scalars(const Settings& settings);

/// What of an update changes from step to step: 1 - learning_rate * weight_decay, learning_rate / (1 -
/// beta1^step), sqrt(1 - beta2^step), step.
using StepNumbers = std::array<double, 4>;
/// Errors: those of `scalars`; SpecError adamw_c7 where `rounds` (states are bf16).
StepNumbers step_numbers(const Settings& settings, bool rounds);

/// Updates one flat range in place in one pass: master, first and second moment from the gradient; then the
/// working weights, rounded from master. All 1-D of equal length; master, moments and gradient of one dtype
/// (fp32 or fp64); `weight` bf16, or the same storage as master when there is no separate master copy.
/// Or all of weight = master and moments in bf16 with an fp32 gradient: computed in fp32, rounded by chance.
/// Errors: SpecError adamw_c1 .. adamw_c7
void update(at::Tensor weight, at::Tensor master, const at::Tensor& gradient, at::Tensor moment1,
            at::Tensor moment2, const Settings& settings);

/// The same with the gradient's scale taken from `coefficient` [fp64 scalar, on master's device] instead of
/// settings.gradient_scale; where it is NaN nothing is written. Nothing waits for the host on a GPU.
/// `numbers` [4 fp64, on master's device]: step_numbers, read there instead of settings.learning_rate,
/// weight_decay and step, so that an update recorded once serves every step; undefined: those of the
/// settings, the same bits.
void update_guarded(at::Tensor weight, at::Tensor master, const at::Tensor& gradient, at::Tensor moment1,
                    at::Tensor moment2, const Settings& settings, const at::Tensor& coefficient,
                    const at::Tensor& numbers = {});

/// The implementations behind update, of the same meaning, arguments unchecked: `cpu` are fused loops for CPU
/// tensors, `cuda` our kernels and vendor libraries for CUDA tensors, `aten` is written in ATen calls and
/// runs on any device, for states in fp32 and fp64.
namespace cpu {
decltype(adamw::update) update;
/// The same by numbers that are given; settings.step is read for the roundings of bf16 states.
void update_by(const spec::adamw::Scalars& shared, at::Tensor weight, at::Tensor master,
               const at::Tensor& gradient, at::Tensor moment1, at::Tensor moment2, const Settings& settings);
}  // namespace cpu
namespace cuda {
decltype(adamw::update) update;
decltype(adamw::update_guarded) update_guarded;
}  // namespace cuda
namespace aten {
decltype(adamw::update) update;
}  // namespace aten

}  // namespace assay::impl::adamw
