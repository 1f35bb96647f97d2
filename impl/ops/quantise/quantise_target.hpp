#pragma once
// Twins as what the kernels write.
#include <ATen/core/Tensor.h>

#include "impl/ops/quantise/quantise.hpp"
#include "impl/ops/quantise/quantise_launch.hpp"

namespace assay::impl::quantise::cuda {

/// Columns from `first` on of a matrix [R, width], whose twins are written; amax defined where it is read.
inline Target target_of(const Twins& twins, Format format, std::int64_t width, std::int64_t first,
                        const at::Tensor& amax) {
  Target target{.format = format, .width = width, .first = first};
  if (twins.rows.defined()) {
    target.rows = static_cast<std::uint8_t*>(twins.rows.codes.data_ptr());
    target.row_scales = twins.rows.scales.data_ptr();
  }
  if (twins.columns.defined()) {
    target.columns = static_cast<std::uint8_t*>(twins.columns.codes.data_ptr());
    target.column_scales = twins.columns.scales.data_ptr();
  }
  if (amax.defined()) target.amax = amax.data_ptr<float>();
  return target;
}

}  // namespace assay::impl::quantise::cuda
