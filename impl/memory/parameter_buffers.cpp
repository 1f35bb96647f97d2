#include "impl/memory/parameter_buffers.hpp"

#include <ATen/ATen.h>

#include <cmath>
#include <stdexcept>

#include "impl/model/views.hpp"
#include "impl/ops/clip_grad_norm.hpp"
#include "impl/ops/init.hpp"
#include "spec/error.hpp"

namespace assay::impl {

at::ScalarType scalar_type(Dtype dtype) {
  switch (dtype) {
    case Dtype::f64:
      return at::kDouble;
    case Dtype::f32:
      return at::kFloat;
    case Dtype::bf16:
      return at::kBFloat16;
  }
  throw std::invalid_argument("not a compute dtype");
}

std::int64_t ParameterBuffers::bytes() const {
  std::int64_t sum = 0;
  for (const at::Tensor* buffer : {&weights, &gradients, &moment1, &moment2})
    sum += static_cast<std::int64_t>(buffer->nbytes());
  return master.is_same(weights) ? sum : sum + static_cast<std::int64_t>(master.nbytes());
}

ParameterBuffers allocate(const spec::ModelSpec& model, Dtype dtype, at::Device device, Dtype states) {
  ParameterBuffers buffers;
  buffers.inventory = spec::inventory(model);
  const auto zeros = [&](Dtype element) {
    return at::zeros({buffers.inventory.flat_size},
                     at::TensorOptions().dtype(scalar_type(element)).device(device));
  };
  const Dtype state = dtype == Dtype::bf16 ? states : dtype;
  buffers.weights = zeros(dtype);
  buffers.gradients = zeros(dtype == Dtype::bf16 ? Dtype::f32 : dtype);
  buffers.master = state != dtype ? zeros(state) : buffers.weights;
  buffers.moment1 = zeros(state);
  buffers.moment2 = zeros(state);
  return buffers;
}

void initialise(ParameterBuffers& buffers, const spec::ModelSpec& model, std::uint64_t seed) {
  std::int64_t index = 0;
  for (const spec::Parameter& parameter : buffers.inventory.parameters)
    init::fill(buffers.master.narrow(0, parameter.offset, parameter.size), parameter, index++, model, seed);
  if (!buffers.master.is_same(buffers.weights)) buffers.weights.copy_(buffers.master);
}

std::string first_non_finite_gradient(const ParameterBuffers& buffers, spec::Inventory::Range range) {
  const at::Tensor gradients = buffers.gradients.narrow(0, range.begin, range.end - range.begin);
  // A sum of squares is finite only if every term is; it costs one pass and no temporary of the range's size.
  if (std::isfinite(clip_grad_norm::sum_of_squares(gradients).item<double>())) return "";
  for (const spec::Parameter& parameter : buffers.inventory.parameters) {
    if (parameter.offset < range.begin || parameter.offset >= range.end) continue;
    if (!at::isfinite(buffers.gradients.narrow(0, parameter.offset, parameter.size)).all().item<bool>())
      return parameter.name;
  }
  return "";
}

}  // namespace assay::impl
