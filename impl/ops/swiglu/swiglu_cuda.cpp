#include <ATen/ATen.h>

#include "impl/ops/cuda_tensor.hpp"
#include "impl/ops/swiglu/swiglu.hpp"
#include "impl/ops/swiglu/swiglu_launch.hpp"

namespace assay::impl::swiglu::cuda {

using impl::cuda::dtype_of;
using impl::cuda::stream;

namespace {

at::Tensor forward_of(const at::Tensor& gate_up, Activation activation, const RowPointers* weights) {
  const std::int64_t N = gate_up.size(0), F = gate_up.size(1) / 2;
  at::Tensor y = at::empty({N, F}, gate_up.options());
  launch_forward(dtype_of(gate_up), activation, N, F, gate_up.const_data_ptr(), y.data_ptr(), weights,
                 stream());
  return y;
}

at::Tensor backward_of(const at::Tensor& dy, at::Tensor gate_up, Activation activation, ForwardValue value,
                       const RowPointers* weights) {
  const std::int64_t N = gate_up.size(0), F = gate_up.size(1) / 2;
  launch_backward(dtype_of(gate_up), activation, N, F, dy.data_ptr(), gate_up.data_ptr(), value, weights,
                  stream());
  return gate_up;
}

RowPointers pointers(const RowWeights& weights, const at::Tensor& gradients = {}) {
  return {weights.values.const_data_ptr(), weights.slots.const_data_ptr<std::int32_t>(),
          gradients.defined() ? gradients.data_ptr() : nullptr};
}

}  // namespace

at::Tensor forward(const at::Tensor& gate_up, Activation activation) {
  return forward_of(gate_up, activation, nullptr);
}

at::Tensor backward(at::Tensor dy, at::Tensor gate_up, Activation activation, ForwardValue value) {
  return backward_of(dy, std::move(gate_up), activation, value, nullptr);
}

at::Tensor forward_weighted(const at::Tensor& gate_up, Activation activation, const RowWeights& weights) {
  const RowPointers rows = pointers(weights);
  return forward_of(gate_up, activation, &rows);
}

at::Tensor backward_weighted(at::Tensor dy, at::Tensor gate_up, Activation activation, ForwardValue value,
                             const RowWeights& weights, at::Tensor dweights) {
  const RowPointers rows = pointers(weights, dweights);
  return backward_of(dy, std::move(gate_up), activation, value, &rows);
}

}  // namespace assay::impl::swiglu::cuda
