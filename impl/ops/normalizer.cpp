#include "impl/ops/normalizer.hpp"

#include <ATen/ATen.h>

#include <utility>

namespace assay::impl {

Normalizer::Normalizer(at::Tensor value) : tensor_(std::move(value)) {
  TORCH_CHECK(tensor_.defined() && tensor_.scalar_type() == at::kDouble && tensor_.numel() == 1,
              "a normalizer is one number in fp64");
}

std::optional<double> Normalizer::known() const {
  if (!tensor_.defined()) return value_;
  if (!tensor_.is_cpu()) return {};
  return tensor_.item<double>();
}

at::Tensor Normalizer::on(at::Device device) const {
  if (!tensor_.defined()) return at::full({}, value_, at::TensorOptions(device).dtype(at::kDouble));
  TORCH_CHECK(tensor_.device().type() == device.type(), "the normalizer is on ", tensor_.device(),
              ", the logits are on ", device);
  return tensor_;
}

}  // namespace assay::impl
