#pragma once
// AdamW over the flat buffers: few long ranges instead of one call per tensor.
#include <vector>

#include "impl/memory/parameter_buffers.hpp"

namespace assay::impl {

/// Element range [begin, end) of the flat buffers that shares one weight decay.
struct DecayRange {
  std::int64_t begin, end;
  bool decay;  ///< matrices decay, gains do not (spec/ops/adamw.md)
  bool operator==(const DecayRange&) const = default;
};

/// The flat buffer cut into as few ranges as weight decay allows, in order, covering every parameter.
std::vector<DecayRange> decay_ranges(const spec::Inventory& inventory);

/// Hyperparameters that stay the same over a run.
struct AdamWSettings {
  double beta1, beta2, eps, weight_decay;
  std::uint64_t seed = 0;  ///< of the roundings of bf16 states
};

/// Sets a flat gradient to zero, as every step begins.
void zero_gradients(at::Tensor gradients);

/// One update of all parameters. `step` counts from 1; `coefficient` is the clip coefficient, an fp64 scalar
/// on the buffers' device; where it is NaN nothing is changed.
void update(ParameterBuffers& buffers, const AdamWSettings& settings, double learning_rate, std::int64_t step,
            const at::Tensor& coefficient);

}  // namespace assay::impl
