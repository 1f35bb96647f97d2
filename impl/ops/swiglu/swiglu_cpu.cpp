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

template <Activation activation>
at::Tensor forward_of(const at::Tensor& gate_up) {
  const std::int64_t N = gate_up.size(0), F = gate_up.size(1) / 2;
  at::Tensor y = at::empty({N, F}, gate_up.options());
  impl::cpu::with_element(gate_up.scalar_type(), "swiglu", [&](auto element) {
    using scalar_t = decltype(element);
    using M = Math<scalar_t>;
    constexpr std::int64_t lanes = impl::cpu::Lanes<M>::count;
    const auto* in = gate_up.const_data_ptr<scalar_t>();
    auto* ys = y.data_ptr<scalar_t>();
    impl::cpu::for_rows(N, 2 * F, [&](std::int64_t n) {
      const scalar_t *gate = in + n * 2 * F, *up = gate + F;
      scalar_t* out = ys + n * F;
      for (std::int64_t f = 0; f < F; f += lanes) {
        const auto g = load(gate + f, F - f), u = load(up + f, F - f);
        store(out + f, g / (M(1) + exponential(-argument<activation, M>(g))) * u, F - f);
      }
    });
  });
  return y;
}

template <Activation activation>
at::Tensor backward_of(at::Tensor dy, at::Tensor gate_up, ForwardValue value) {
  const std::int64_t N = gate_up.size(0), F = gate_up.size(1) / 2;
  const bool again = value == ForwardValue::again;
  impl::cpu::with_element(gate_up.scalar_type(), "swiglu_backward", [&](auto element) {
    using scalar_t = decltype(element);
    using M = Math<scalar_t>;
    constexpr std::int64_t lanes = impl::cpu::Lanes<M>::count;
    auto* dys = dy.data_ptr<scalar_t>();
    auto* in = gate_up.data_ptr<scalar_t>();
    impl::cpu::for_rows(N, 2 * F, [&](std::int64_t n) {
      scalar_t *gate = in + n * 2 * F, *up = gate + F;
      scalar_t* upstream = dys + n * F;
      for (std::int64_t f = 0; f < F; f += lanes) {
        const auto g = load(gate + f, F - f), u = load(up + f, F - f), d = load(upstream + f, F - f);
        const auto sigmoid = M(1) / (M(1) + exponential(-argument<activation, M>(g)));
        auto rest = g * (M(1) - sigmoid);
        if constexpr (activation == Activation::gelu_tanh) rest = rest * argument_slope<M>(g);
        store(gate + f, d * u * sigmoid * (M(1) + rest), F - f);
        store(up + f, d * (g * sigmoid), F - f);
        if (again) store(upstream + f, g / (M(1) + exponential(-argument<activation, M>(g))) * u, F - f);
      }
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

}  // namespace assay::impl::swiglu::cpu
