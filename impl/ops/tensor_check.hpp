#pragma once
// Text of shapes for the errors of ops.
#include <ATen/core/Tensor.h>

#include <sstream>
#include <string>

namespace assay::impl {

/// "[2, 3, 8] Float on cpu"
inline std::string describe(const at::Tensor& tensor) {
  if (!tensor.defined()) return "undefined";
  std::ostringstream text;
  text << tensor.sizes() << " " << tensor.scalar_type() << " on " << tensor.device();
  return text.str();
}

}  // namespace assay::impl
