#pragma once
// What a loss is divided by.
#include <ATen/core/Tensor.h>

#include <optional>

namespace assay::impl {

/// Valid tokens of a whole optimizer step, over all micro-batches and ranks. A number, or an fp64 scalar
/// tensor that is read where the loss is computed, so that work which was recorded once serves steps with
/// other counts. Both give the same bits.
class Normalizer {
 public:
  Normalizer(double value) : value_(value) {}
  /// `value`: on the device of the logits.
  Normalizer(at::Tensor value);

  /// The number, where it can be had without waiting for a GPU.
  std::optional<double> known() const;
  /// As a tensor on the device.
  at::Tensor on(at::Device device) const;

 private:
  double value_ = 0;
  at::Tensor tensor_;  ///< undefined: value_ it is
};

}  // namespace assay::impl
