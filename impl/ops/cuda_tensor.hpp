#pragma once
// What the glue between tensors and kernels shares: <op>_cuda.cpp takes tensors apart, <op>.cu sees pointers.
#include <ATen/core/Tensor.h>
#include <c10/cuda/CUDAStream.h>

#include "impl/ops/cuda_launch.hpp"
#include "impl/ops/math_type.hpp"

namespace assay::impl::cuda {

/// Errors: c10::Error for an element type that no kernel is compiled for.
inline Dtype dtype_of(const at::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case at::kDouble:
      return Dtype::f64;
    case at::kFloat:
      return Dtype::f32;
    case at::kBFloat16:
      return Dtype::bf16;
    default:
      TORCH_CHECK(false, "no kernel for elements of type ", tensor.scalar_type());
  }
}

using impl::math_type;

/// The stream that ATen works on, so that kernels follow its calls in order.
inline cudaStream_t stream() { return c10::cuda::getCurrentCUDAStream(); }

}  // namespace assay::impl::cuda
