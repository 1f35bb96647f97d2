#pragma once
// One entry of swiglu and of its gradient, for every kernel that computes them. Multiply-adds are written
// out: whichever kernel makes a value, it has the same bits.
#include <type_traits>

#include "impl/ops/cuda_vector.cuh"
#include "spec/ops/swiglu/gate_activation.hpp"

namespace assay::impl::swiglu::cuda {

using spec::swiglu::Activation;

/// sigma(z(gate)).
template <Activation activation, class M>
__device__ __forceinline__ M sigmoid_of(M gate) {
  M z = gate;
  if constexpr (activation == Activation::gelu_tanh)
    z = M(spec::swiglu::slope) * gate * fma(M(spec::swiglu::cubic) * gate, gate, M(1));
  return impl::cuda::reciprocal(M(1) + impl::cuda::exponential(-z));
}

/// 1 + gate (1 - sigmoid) z'(gate).
template <Activation activation, class M>
__device__ __forceinline__ M slope_of(M gate, M sigmoid) {
  if constexpr (activation == Activation::silu) return fma(gate, M(1) - sigmoid, M(1));
  return fma(gate * (M(1) - sigmoid),
             M(spec::swiglu::slope) * fma(M(3 * spec::swiglu::cubic) * gate, gate, M(1)), M(1));
}

template <Activation activation, class M>
__device__ __forceinline__ M gated(M gate, M up) {
  return gate * sigmoid_of<activation>(gate) * up;
}

template <class M>
struct GateGradient {
  M gate, up, gated;  ///< of gate, of up; forward's value again
};
template <Activation activation, class M>
__device__ __forceinline__ GateGradient<M> gradient(M gate, M up, M upstream) {
  const M sigmoid = sigmoid_of<activation>(gate), activated = gate * sigmoid;
  return {upstream * up * sigmoid * slope_of<activation>(gate, sigmoid), upstream * activated,
          activated * up};
}

/// Calls `call` with the activation as a constant.
template <class Call>
void with_activation(Activation activation, const Call& call) {
  if (activation == Activation::silu)
    call(std::integral_constant<Activation, Activation::silu>{});
  else
    call(std::integral_constant<Activation, Activation::gelu_tanh>{});
}

}  // namespace assay::impl::swiglu::cuda
