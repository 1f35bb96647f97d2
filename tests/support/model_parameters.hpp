#pragma once
// Parameters of whole models in tests: drawn ones, and all of them as one list of values.
#include "reference/model/parameters.hpp"
#include "spec/model/inventory.hpp"
#include "tests/support/compare.hpp"
#include "tests/support/draw.hpp"

namespace assay::tests {

/// Matrices N(0, scale^2), gains 1 + N(0, 0.3^2) and biases N(0, 0.3^2). Unlike initial values, no gain is 1
/// and no bias 0, so one that is left out shows, and no two tensors are alike.
inline reference::Parameters<double> drawn_parameters(const spec::ModelSpec& model, std::uint64_t seed,
                                                      double scale = 0.5) {
  reference::Parameters<double> parameters;
  std::uint64_t index = 0;
  for (const auto& parameter : spec::inventory(model).parameters) {
    auto tensor = normal(parameter.shape, seed * 1000 + index++, parameter.matrix() ? scale : 0.3);
    if (parameter.role == spec::Role::norm) tensor.flat() += 1.0;
    parameters[parameter.name] = std::move(tensor);
  }
  return parameters;
}

/// Every tensor's elements one behind the other in the order of names: what is relative to the largest entry
/// of this is relative to the largest of the whole model.
inline Values joined(const reference::Parameters<double>& parameters) {
  Values all;
  for (const auto& [name, tensor] : parameters)
    all.data.insert(all.data.end(), tensor.flat().begin(), tensor.flat().end());
  all.shape = {static_cast<std::int64_t>(all.data.size())};
  return all;
}

/// Adds `more` to `sum`, name by name. Errors: std::out_of_range on a name that `sum` lacks.
inline void add(reference::Parameters<double>& sum, const reference::Parameters<double>& more) {
  for (const auto& [name, tensor] : more) sum.at(name).flat() += tensor.flat();
}

}  // namespace assay::tests
