#include "reference/model/parameters.hpp"

#include "reference/ops/init.hpp"
#include "spec/model/inventory.hpp"

namespace assay::reference {

Parameters<double> initial_parameters(const spec::ModelSpec& model, std::uint64_t seed) {
  Parameters<double> parameters;
  Index index = 0;
  for (const spec::Parameter& parameter : spec::inventory(model).parameters)
    parameters[parameter.name] = init::values(parameter, index++, model, seed);
  return parameters;
}

Parameters<double> zeros(const spec::ModelSpec& model) {
  Parameters<double> parameters;
  for (const spec::Parameter& parameter : spec::inventory(model).parameters)
    parameters[parameter.name] = Tensor<double>(parameter.shape);
  return parameters;
}

}  // namespace assay::reference
