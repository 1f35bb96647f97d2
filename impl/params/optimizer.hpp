#pragma once
// AdamW over the flat buffers: few long ranges instead of one call per tensor.
#include <array>
#include <vector>

#include "impl/params/parameter_buffers.hpp"

namespace assay::impl {

/// Element range [begin, end) of the flat buffers that shares one weight decay, one group of holders, and one
/// distance to its place in the whole model.
struct DecayRange {
  std::int64_t begin, end;
  bool decay;              ///< matrices decay, gains do not (spec/ops/adamw/adamw.md)
  std::int64_t group = 0;  ///< of the tensor ranks that hold the same entries (spec/parallel/placement.md)
  std::int64_t moved = 0;  ///< spec::Placement::moved
  bool operator==(const DecayRange&) const = default;
};

/// The flat buffer of a set cut into as few ranges as both allow, in order, covering every parameter.
std::vector<DecayRange> decay_ranges(const ParameterBuffers& buffers);

/// Hyperparameters that stay the same over a run.
struct AdamWSettings {
  double beta1, beta2, eps, weight_decay;
  std::uint64_t seed = 0;  ///< of the roundings of bf16 states
};

/// Sets gradients to zero.
void zero_gradients(at::TensorList gradients);

/// adamw::step_numbers of matrices, which decay, then of gains.
using UpdateNumbers = std::array<double, 8>;
/// Of one step, which counts from 1. Errors: SpecError adamw_c2..
UpdateNumbers update_numbers(const ParameterBuffers& buffers, const AdamWSettings& settings,
                             double learning_rate, std::int64_t step);

/// One update of all sets of parameters. On the buffers' device, in fp64:
/// `numbers` [8] of the step, and the clip coefficient, a scalar; where it is NaN nothing is changed.
void update(ParameterBuffers& buffers, const AdamWSettings& settings, const at::Tensor& numbers,
            const at::Tensor& coefficient);

/// Moves the routers' biases [sparse layers, X] by `rate` towards even loads, once a step. `loads`, of the
/// same shape, in fp64: choices of each expert over the whole step. Where the clip coefficient is not finite
/// nothing is changed. [spec/ops/load_balancing/load_balancing.md]
void move_router_biases(const at::Tensor& biases, const at::Tensor& loads, double rate,
                        const at::Tensor& coefficient);

}  // namespace assay::impl
