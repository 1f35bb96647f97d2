#include <ATen/ATen.h>

#include "impl/ops/cpu_math.hpp"
#include "impl/ops/swiglu/swiglu.hpp"

namespace assay::impl::swiglu::cpu {

using impl::cpu::exponential;
using impl::cpu::load;
using impl::cpu::Math;
using impl::cpu::store;

namespace {

/// z of the gate, and z' of gelu_tanh, of a vector's numbers.
template <Activation activation, class M, class V>
V argument(V gate) {
  if constexpr (activation == Activation::silu)
    return gate;
  else
    return M(spec::swiglu::slope) * gate * (M(1) + M(spec::swiglu::cubic) * gate * gate);
}
template <class M, class V>
V argument_slope(V gate) {
  return M(spec::swiglu::slope) * (M(1) + M(3 * spec::swiglu::cubic) * gate * gate);
}

/// The weights of rows, or 1 for each. M: type of sums.
template <class M>
struct Weights {
  const M* values = nullptr;
  const std::int32_t* slots = nullptr;
  M* gradients = nullptr;

  explicit Weights(const RowWeights* of, const at::Tensor& gradient = {}) {
    if (!of) return;
    values = static_cast<const M*>(of->values.const_data_ptr());
    slots = of->slots.const_data_ptr<std::int32_t>();
    if (gradient.defined()) gradients = static_cast<M*>(gradient.data_ptr());
  }
  M operator[](std::int64_t row) const { return values ? values[slots[row]] : M(1); }
};

template <Activation activation>
at::Tensor forward_of(const at::Tensor& gate_up, const RowWeights* row_weights = nullptr) {
  const std::int64_t N = gate_up.size(0), F = gate_up.size(1) / 2;
  at::Tensor y = at::empty({N, F}, gate_up.options());
  impl::cpu::with_element(gate_up.scalar_type(), "swiglu", [&](auto element) {
    using scalar_t = decltype(element);
    using M = Math<scalar_t>;
    constexpr std::int64_t lanes = impl::cpu::Lanes<M>::count;
    const auto* in = gate_up.const_data_ptr<scalar_t>();
    auto* ys = y.data_ptr<scalar_t>();
    const Weights<M> weights(row_weights);
    impl::cpu::for_rows(N, 2 * F, [&](std::int64_t n) {
      const M weight = weights[n];
      const scalar_t *gate = in + n * 2 * F, *up = gate + F;
      scalar_t* out = ys + n * F;
      for (std::int64_t f = 0; f < F; f += lanes) {
        const auto g = load(gate + f, F - f), u = load(up + f, F - f);
        store(out + f, weight * (g / (M(1) + exponential(-argument<activation, M>(g))) * u), F - f);
      }
    });
  });
  return y;
}

template <Activation activation>
at::Tensor backward_of(at::Tensor dy, at::Tensor gate_up, ForwardValue value,
                       const RowWeights* row_weights = nullptr, const at::Tensor& dweights = {}) {
  const std::int64_t N = gate_up.size(0), F = gate_up.size(1) / 2;
  const bool again = value == ForwardValue::again;
  impl::cpu::with_element(gate_up.scalar_type(), "swiglu_backward", [&](auto element) {
    using scalar_t = decltype(element);
    using M = Math<scalar_t>;
    constexpr std::int64_t lanes = impl::cpu::Lanes<M>::count;
    auto* dys = dy.data_ptr<scalar_t>();
    auto* in = gate_up.data_ptr<scalar_t>();
    const Weights<M> weights(row_weights, dweights);
    const bool value_read = again || weights.gradients;
    impl::cpu::for_rows(N, 2 * F, [&](std::int64_t n) {
      const M weight = weights[n];
      typename impl::cpu::Lanes<M>::Vector along{};  // upstream times what the weight is multiplied with
      scalar_t *gate = in + n * 2 * F, *up = gate + F;
      scalar_t* upstream = dys + n * F;
      for (std::int64_t f = 0; f < F; f += lanes) {
        const auto g = load(gate + f, F - f), u = load(up + f, F - f), given = load(upstream + f, F - f),
                   d = weight * given;
        const auto sigmoid = M(1) / (M(1) + exponential(-argument<activation, M>(g)));
        auto rest = g * (M(1) - sigmoid);
        if constexpr (activation == Activation::gelu_tanh) rest = rest * argument_slope<M>(g);
        store(gate + f, d * u * sigmoid * (M(1) + rest), F - f);
        store(up + f, d * (g * sigmoid), F - f);
        if (!value_read) continue;
        const auto gated = g / (M(1) + exponential(-argument<activation, M>(g))) * u;
        along += given * gated;
        if (again) store(upstream + f, weight * gated, F - f);
      }
      if (weights.gradients) weights.gradients[weights.slots[n]] = impl::cpu::sum_of<M>(along);
    });
  });
  return gate_up;
}

}  // namespace

at::Tensor forward(const at::Tensor& gate_up, Activation activation) {
  return activation == Activation::silu ? forward_of<Activation::silu>(gate_up)
                                        : forward_of<Activation::gelu_tanh>(gate_up);
}

at::Tensor backward(at::Tensor dy, at::Tensor gate_up, Activation activation, ForwardValue value) {
  return activation == Activation::silu ? backward_of<Activation::silu>(dy, gate_up, value)
                                        : backward_of<Activation::gelu_tanh>(dy, gate_up, value);
}

at::Tensor forward_weighted(const at::Tensor& gate_up, Activation activation, const RowWeights& weights) {
  return activation == Activation::silu ? forward_of<Activation::silu>(gate_up, &weights)
                                        : forward_of<Activation::gelu_tanh>(gate_up, &weights);
}

at::Tensor backward_weighted(at::Tensor dy, at::Tensor gate_up, Activation activation, ForwardValue value,
                             const RowWeights& weights, at::Tensor dweights) {
  return activation == Activation::silu
             ? backward_of<Activation::silu>(dy, gate_up, value, &weights, dweights)
             : backward_of<Activation::gelu_tanh>(dy, gate_up, value, &weights, dweights);
}

}  // namespace assay::impl::swiglu::cpu
