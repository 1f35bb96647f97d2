#pragma once
// Between the trainer's tensors, the reference's and the comparator's; drawn dtypes; the roundings of a
// dtype; runs with a stated number of threads; libtorch's autograd.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <rapidcheck.h>
#include <torch/csrc/autograd/autograd.h>

#include <cstring>

#include "reference/tensor.hpp"
#include "spec/tolerance.hpp"
#include "tests/support/compare.hpp"
#include "tests/support/draw.hpp"
#include "tests/support/gradient_check.hpp"

namespace assay::tests {

/// The values of a tensor of any dtype and device; conversion to double is exact.
inline reference::Tensor<double> exact(const at::Tensor& tensor) {
  const at::Tensor wide = tensor.detach().to(at::kCPU).to(at::kDouble).contiguous();
  reference::Tensor<double> out(tensor.sizes().vec());
  std::copy_n(wide.const_data_ptr<double>(), wide.numel(), out.flat().data());
  return out;
}

inline Values values(const at::Tensor& tensor) { return values(exact(tensor)); }

/// A tensor of the trainer with the given values, rounded to `type`.
inline at::Tensor rounded(const reference::Tensor<double>& from, at::ScalarType type) {
  at::Tensor out = at::empty(from.shape(), at::kDouble);
  std::copy_n(from.flat().data(), from.size(), out.data_ptr<double>());
  return out.to(type);
}

/// N(0, scale^2) entries rounded to `type`: what the trainer gets. The reference gets `exact` of it.
inline at::Tensor normal(reference::Shape shape, std::uint64_t seed, at::ScalarType type, double scale = 1) {
  return rounded(normal(std::move(shape), seed, scale), type);
}

/// Integer tensors of the trainer, and the reference's row-major vector of the same.
inline at::Tensor integers(const reference::Ids& ids, at::ScalarType type = at::kLong) {
  return at::tensor(at::ArrayRef<std::int64_t>(ids), at::kLong).to(type);
}

/// float64, float32 or bfloat16.
inline at::ScalarType draw_dtype() { return *rc::gen::element(at::kDouble, at::kFloat, at::kBFloat16); }

/// Type of statistics and of weights' gradients beside elements of `type`.
inline at::ScalarType math_of(at::ScalarType type) { return type == at::kBFloat16 ? at::kFloat : type; }

/// Which forms of an op are tested on a device: the op as the trainer calls it (false), on the CPU also its
/// ATen form (true).
inline std::vector<bool> forms(at::Device device) {
  return device.is_cpu() ? std::vector<bool>{false, true} : std::vector<bool>{false};
}

/// An extent from 1 up to below `small`; on a GPU half of them are multiples of 8 up to `wide`, for which
/// kernels move 16 bytes at a time.
inline reference::Index draw_extent(at::Device device, reference::Index small, reference::Index wide) {
  if (device.is_cpu() || *rc::gen::arbitrary<bool>()) return *rc::gen::inRange<reference::Index>(1, small);
  return 8 * *rc::gen::inRange<reference::Index>(1, wide / 8 + 1);
}

/// Roundings of a computation on elements of one dtype, compared with a reference in fp64.
struct Rounding {
  double math;             ///< unit roundoff of the arithmetic
  double store;            ///< unit roundoff of storing, 0 where the arithmetic has rounded already
  double smallest;         ///< least normal number of the arithmetic: what underflow may lose
  double exponential = 2;  ///< roundings that exp counts as: 2 in impl/ops/cpu_math.hpp
  double argument = 0;     ///< and for each unit of the size of its argument
  double reciprocal = 1;   ///< those of 1 / x

  /// Relative bound of n roundings here and n in the reference.
  double gamma(double n) const { return assay::gamma(n, math) + assay::gamma(n, unit_roundoff(Dtype::f64)); }
  /// Bound of `value`, known to `bound`, once it is stored.
  double stored(double value, double bound) const { return bound + store * (std::abs(value) + bound); }
};

inline Rounding rounding_of(at::ScalarType type) {
  if (type == at::kDouble) return {unit_roundoff(Dtype::f64), 0, std::numeric_limits<double>::min()};
  const double store = type == at::kBFloat16 ? unit_roundoff(Dtype::bf16) : 0;
  return {unit_roundoff(Dtype::f32), store, std::numeric_limits<float>::min()};
}

/// On a GPU exp is within 2 units in the last place, which are 4 roundings (CUDA C++ Programming Guide, table
/// of mathematical functions). In fp32 it may be a power of 2 whose argument is rounded twice, and 1 / x is
/// within a unit in the last place (impl/ops/cuda_vector.cuh).
inline Rounding rounding_of(at::ScalarType type, at::Device device) {
  Rounding rounding = rounding_of(type);
  if (!device.is_cuda()) return rounding;
  rounding.exponential = 4;
  if (type != at::kDouble) rounding.argument = rounding.reciprocal = 2;
  return rounding;
}

/// A bound for every entry: Allowed of bound(i) for i in [0, size).
template <class Bound>
Allowed each(reference::Index size, const Bound& bound) {
  std::vector<double> bounds(static_cast<std::size_t>(size));
  for (reference::Index i = 0; i < size; ++i) bounds[static_cast<std::size_t>(i)] = bound(i);
  return Allowed::elementwise(std::move(bounds));
}

/// Same dtype, shape and bytes.
inline bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  if (a.scalar_type() != b.scalar_type() || a.sizes() != b.sizes()) return false;
  const at::Tensor left = a.cpu().contiguous(), right = b.cpu().contiguous();
  return std::memcmp(left.const_data_ptr(), right.const_data_ptr(), left.nbytes()) == 0;
}

/// Result of `call` with `threads` threads.
template <class Call>
auto with_threads(int threads, const Call& call) {
  const int before = at::get_num_threads();
  at::set_num_threads(threads);
  auto result = call();
  at::set_num_threads(before);
  return result;
}

/// Whether `call`, which returns a list of tensors, gives the same bits twice, and with one thread as with
/// two.
template <class Call>
testing::AssertionResult repeatable(const Call& call) {
  const auto same = [](const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), same_bits);
  };
  const auto first = with_threads(2, call);
  if (!same(first, with_threads(2, call)))
    return testing::AssertionFailure() << "a second run gives other bits";
  if (!same(first, with_threads(1, call)))
    return testing::AssertionFailure() << "one thread gives other bits than two";
  return testing::AssertionSuccess();
}

/// Label of the SpecError that `call` throws, or "accepted".
template <class Call>
std::string refusal(const Call& call) {
  try {
    call();
    return "accepted";
  } catch (const SpecError& error) {
    return error.label();
  }
}

/// A leaf of autograd with the values of `tensor`.
inline at::Tensor leaf(const at::Tensor& tensor) { return tensor.detach().clone().set_requires_grad(true); }

/// Gradients of sum(dy * y) by libtorch's autograd: the third opinion beside reference and central
/// differences.
inline std::vector<at::Tensor> autograd(const at::Tensor& y, const at::Tensor& dy,
                                        const std::vector<at::Tensor>& leaves) {
  return torch::autograd::grad({y}, leaves, {dy});
}

}  // namespace assay::tests
