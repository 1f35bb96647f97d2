#pragma once
// Between the trainer's tensors, the reference's and the comparator's; drawn dtypes; runs of one and two threads.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <rapidcheck.h>
#include <torch/csrc/autograd/autograd.h>

#include "reference/tensor.hpp"
#include "spec/tolerance.hpp"
#include "tests/support/compare.hpp"
#include "tests/support/draw.hpp"

namespace assay::tests {

inline Dtype dtype_of(at::ScalarType type) {
  return type == at::kDouble ? Dtype::f64 : type == at::kFloat ? Dtype::f32 : Dtype::bf16;
}

/// Type in which the trainer computes with elements of `type` and keeps their statistics and gradients of weights.
inline at::ScalarType math_of(at::ScalarType type) { return type == at::kBFloat16 ? at::kFloat : type; }

/// Unit roundoff of storing in `type`, and of arithmetic on elements of `type`.
inline double storage_roundoff(at::ScalarType type) { return unit_roundoff(dtype_of(type)); }
inline double math_roundoff(at::ScalarType type) { return unit_roundoff(dtype_of(math_of(type))); }

/// Any of float64, float32, bfloat16.
inline at::ScalarType draw_dtype() { return *rc::gen::element(at::kDouble, at::kFloat, at::kBFloat16); }

/// The values of a CPU tensor of any dtype; conversion to double is exact.
inline reference::Tensor<double> exact(const at::Tensor& tensor) {
  const at::Tensor wide = tensor.detach().to(at::kCPU).to(at::kDouble).contiguous();
  reference::Tensor<double> out(tensor.sizes().vec());
  std::copy_n(wide.const_data_ptr<double>(), wide.numel(), out.flat().data());
  return out;
}

inline Values values(const at::Tensor& tensor) {
  const auto all = exact(tensor);
  return {all.shape(), std::vector<double>(all.flat().begin(), all.flat().end())};
}

/// A tensor of the trainer, rounded to `type`.
inline at::Tensor tensor(const reference::Tensor<double>& from, at::ScalarType type) {
  at::Tensor out = at::empty(from.shape(), at::kDouble);
  std::copy_n(from.flat().data(), from.size(), out.data_ptr<double>());
  return out.to(type);
}

/// N(0, scale^2) entries rounded to `type`: what the trainer gets; `exact` of it is what the reference gets.
inline at::Tensor normal(reference::Shape shape, std::uint64_t seed, at::ScalarType type, double scale = 1) {
  return tensor(normal(std::move(shape), seed, scale), type);
}

/// Every entry of `tensor` times `factor`, as bounds for the comparator.
inline Allowed bound(const at::Tensor& tensor) {
  return Allowed::elementwise(values(tensor).data);
}

/// Same dtype, shape and bytes.
inline bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  if (a.scalar_type() != b.scalar_type() || a.sizes() != b.sizes()) return false;
  const at::Tensor left = a.contiguous(), right = b.contiguous();
  return std::memcmp(left.const_data_ptr(), right.const_data_ptr(), left.nbytes()) == 0;
}

/// Result of `call` with `threads` threads of the OpenMP pool.
template <class Call>
auto with_threads(int threads, Call&& call) {
  const int before = at::get_num_threads();
  at::set_num_threads(threads);
  auto result = call();
  at::set_num_threads(before);
  return result;
}

/// Gradients of sum(dy * y) for each input by libtorch's autograd: the third opinion beside reference and differences.
inline std::vector<at::Tensor> autograd(const at::Tensor& y, const at::Tensor& dy, const std::vector<at::Tensor>& inputs) {
  return torch::autograd::grad({y}, inputs, {dy});
}

/// A leaf of autograd with the values of `tensor`.
inline at::Tensor leaf(const at::Tensor& tensor) { return tensor.detach().clone().set_requires_grad(true); }

}  // namespace assay::tests
