#include "impl/params/non_finite_gradient.hpp"

#include <ATen/ATen.h>

#include <cmath>

#include "impl/ops/clip_grad_norm/clip_grad_norm.hpp"
#include "impl/params/parameter_buffers.hpp"

namespace assay::impl {

void NonFiniteGradient::clear() {
  found_.clear();
  sums_.clear();
}

void NonFiniteGradient::look(std::int64_t block, const at::Tensor& gradient) {
  if (gradient.is_cuda())
    sums_.emplace_back(block, clip_grad_norm::sum_of_squares(gradient));
  else if (found_.empty())
    found_ = first_non_finite(inventory_, gradient, inventory_.block_range(block).begin);
}

std::string NonFiniteGradient::name() const {
  for (const auto& [block, sum] : sums_)
    if (!std::isfinite(sum.item<double>()))
      for (const spec::Parameter& parameter : inventory_.parameters)
        if (parameter.block == block) return "the block that begins with " + parameter.name;
  return found_;
}

}  // namespace assay::impl
