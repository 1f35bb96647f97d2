#include "reference/ops/init.hpp"

#include "spec/ops/init/init.hpp"

namespace assay::reference::init {

Tensor<double> values(const spec::Parameter& parameter, Index index, const spec::ModelSpec& model,
                      std::uint64_t seed) {
  spec::init::check_shape(parameter.role, parameter.shape);

  Tensor<double> out(parameter.shape);
  for (Index i = 0; i < out.size(); ++i)
    out[i] = spec::init::initial_value(parameter.role, seed, index, static_cast<std::uint64_t>(i),
                                       model.init_std, model.layers);
  return out;
}

}  // namespace assay::reference::init
