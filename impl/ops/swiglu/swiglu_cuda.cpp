#include <ATen/ATen.h>

#include "impl/ops/cuda_tensor.hpp"
#include "impl/ops/swiglu/swiglu.hpp"
#include "impl/ops/swiglu/swiglu_launch.hpp"

namespace assay::impl::swiglu::cuda {

using impl::cuda::dtype_of;
using impl::cuda::stream;

at::Tensor forward(const at::Tensor& gate_up, Activation activation) {
  const std::int64_t N = gate_up.size(0), F = gate_up.size(1) / 2;
  at::Tensor y = at::empty({N, F}, gate_up.options());
  launch_forward(dtype_of(gate_up), activation, N, F, gate_up.const_data_ptr(), y.data_ptr(), stream());
  return y;
}

at::Tensor backward(at::Tensor dy, at::Tensor gate_up, Activation activation, ForwardValue value) {
  const std::int64_t N = gate_up.size(0), F = gate_up.size(1) / 2;
  launch_backward(dtype_of(gate_up), activation, N, F, dy.data_ptr(), gate_up.data_ptr(), value, stream());
  return gate_up;
}

}  // namespace assay::impl::swiglu::cuda
