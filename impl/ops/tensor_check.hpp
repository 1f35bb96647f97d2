#pragma once
// What the ops check beside the constraints of their specs, and the text of shapes in errors.
#include <ATen/core/Tensor.h>

#include <initializer_list>
#include <sstream>
#include <string>

#include "impl/ops/math_type.hpp"

namespace assay::impl {

/// "[2, 3, 8] Float on cpu"
inline std::string describe(const at::Tensor& tensor) {
  if (!tensor.defined()) return "undefined";
  std::ostringstream text;
  text << tensor.sizes() << " " << tensor.scalar_type() << " on " << tensor.device();
  return text.str();
}

/// The ops walk through memory in order. Errors: c10::Error that names the op and the tensor; a bug of the
/// caller.
inline void check_contiguous(const char* op, std::initializer_list<at::Tensor> tensors) {
  for (const at::Tensor& tensor : tensors)
    TORCH_CHECK(!tensor.defined() || tensor.is_contiguous(), op, ": ", describe(tensor), " has strides ",
                tensor.strides(), "; give a contiguous tensor");
}

/// Gains of norms have the dtype of the statistics: rounded to bf16, a gain of 1 stands still until it has
/// moved by 1/256. Errors: c10::Error that names the op and the tensor; a bug of the caller.
inline void check_statistic(const char* op, const at::Tensor& x, std::initializer_list<at::Tensor> gains) {
  const at::ScalarType wanted = math_type(x.scalar_type());
  for (const at::Tensor& gain : gains)
    TORCH_CHECK(gain.scalar_type() == wanted, op, ": gain is ", describe(gain), ", beside x of ",
                x.scalar_type(), " it is ", wanted);
}

}  // namespace assay::impl
