#include "impl/params/non_finite_gradient.hpp"

#include <utility>

#include "impl/params/parameter_buffers.hpp"

namespace assay::impl {

void NonFiniteGradient::begin() { searches_ = true; }

void NonFiniteGradient::search(std::int64_t block, const at::Tensor& gradient) {
  if (searches_ && found_.empty() && gradient.numel() > 0)
    found_ = first_non_finite(inventory_, gradient, inventory_.block_range(block).begin);
}

std::string NonFiniteGradient::end() {
  searches_ = false;
  return std::exchange(found_, {});
}

}  // namespace assay::impl
