#pragma once
// The parameters of a model, and anything of their shapes: gradients, moments.
#include <cstdint>
#include <map>
#include <string>

#include "reference/tensor.hpp"
#include "spec/model/model_spec.hpp"

namespace assay::reference {

/// Tensors by the names of spec/model/inventory.hpp, which are Hugging Face's ("model.norm.weight").
template <class S>
using Parameters = std::map<std::string, Tensor<S>>;

/// Initial values: matrices N(0, init_std^2), gains 1, biases 0; a pure function of (model, seed).
/// [spec/ops/init/init.md] Errors: SpecError model_c1.. (spec/model/model.md)
Parameters<double> initial_parameters(const spec::ModelSpec& model, std::uint64_t seed);

/// Zeros in the shape of every parameter. Errors: as `initial_parameters`.
Parameters<double> zeros(const spec::ModelSpec& model);

/// Adds the gradient from one use of a parameter. The first use of a name stores it, so that a gradient costs
/// an addition only where a parameter is used twice (tied embeddings, micro-batches).
template <class S>
void add_gradient(Parameters<S>& gradients, const std::string& name, const Tensor<S>& gradient) {
  const auto [entry, first] = gradients.try_emplace(name, gradient);
  if (!first) entry->second.flat() += gradient.flat();
}

}  // namespace assay::reference
