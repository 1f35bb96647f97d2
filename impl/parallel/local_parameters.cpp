#include "impl/parallel/local_parameters.hpp"

namespace assay::impl {

LocalParameters::LocalParameters(const ParameterBuffers& buffers, const spec::ModelSpec& model) {
  for (std::int64_t block = 0; block < buffers.inventory.blocks; ++block) {
    weights_.push_back(views(buffers.weights, buffers.inventory, model, block));
    gradients_.push_back(views(buffers.gradients, buffers.inventory, model, block));
  }
}

}  // namespace assay::impl
