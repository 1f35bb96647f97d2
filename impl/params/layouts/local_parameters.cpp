#include "impl/params/layouts/local_parameters.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

#include "impl/params/optimizer.hpp"

namespace assay::impl {

LocalParameters::LocalParameters(const ParameterBuffers& buffers, const spec::ModelSpec& model)
    : buffers_(buffers),
      gemms_(static_cast<std::size_t>(buffers.inventory.blocks), linear::GradientSum::continues) {
  for (std::int64_t block = 0; block < buffers.inventory.blocks; ++block) {
    weights_.push_back(weight_views(buffers, buffers.weights, buffers.inventory, model, block));
    gradients_.push_back(views(buffers.gradients, buffers.inventory, model, block));
    const auto [begin, end] = buffers.inventory.block_range(block);
    for (at::Tensor& part :
         impl::beside_gemms(buffers.gradients, begin, end, buffers.inventory, block, model.tied_embeddings))
      beside_gemms_.push_back(std::move(part));
  }
}

at::Tensor LocalParameters::block_of(const at::Tensor& whole, std::int64_t block) const {
  const auto range = buffers_.inventory.block_range(block);
  return whole.narrow(0, range.begin, range.end - range.begin);
}

void LocalParameters::begin_step(linear::GradientSum first) {
  std::fill(gemms_.begin(), gemms_.end(), first);
  if (first == linear::GradientSum::starts)
    zero_gradients(beside_gemms_);
  else
    zero_gradients(buffers_.gradients);
}

at::Tensor LocalParameters::sum_of_squares() { return owned_sum_of_squares(buffers_); }

std::string LocalParameters::non_finite_sum() const { return first_non_finite_gradient(buffers_); }

}  // namespace assay::impl
