// swiglu on the GPU: one block per row, each value read and written once. One exp and one reciprocal an
// entry: at the memory's rate there is time for little more.
#include "impl/ops/cuda_vector.cuh"
#include "impl/ops/swiglu/swiglu_gate.cuh"
#include "impl/ops/swiglu/swiglu_launch.hpp"

namespace assay::impl::swiglu::cuda {

using namespace assay::impl::cuda;

namespace {

/// The weights of rows on the device, or 1 for each.
template <class M>
struct Weights {
  const M* values;
  const std::int32_t* slots;
  M* gradients;  ///< written by backward
};

template <class T, int width, Activation activation, bool weighted>
__global__ void forward_kernel(const T* __restrict__ gate_up, T* __restrict__ y, std::int64_t F,
                               Weights<Math<T>> weights) {
  using V = Vector<T, width>;
  const std::int64_t row = blockIdx.x;
  const Math<T> weight = weighted ? weights.values[weights.slots[row]] : Math<T>(1);
  const V *gates = reinterpret_cast<const V*>(gate_up + row * 2 * F),
          *ups = reinterpret_cast<const V*>(gate_up + row * 2 * F + F);
  V* ys = reinterpret_cast<V*>(y + row * F);
  for (std::int64_t i = threadIdx.x; i < F / width; i += blockDim.x) {
    const V g = gates[i], u = ups[i];
    V out;
#pragma unroll
    for (int k = 0; k < width; ++k) {
      const Math<T> value = gated<activation>(widen(g.element[k]), widen(u.element[k]));
      out.element[k] = narrow<T>(weighted ? weight * value : value);
    }
    ys[i] = out;
  }
}

/// `again`: forward's value is written over dy, else dy is only read.
template <class T, int width, bool again, Activation activation, bool weighted>
__global__ void backward_kernel(T* __restrict__ dy, T* __restrict__ gate_up, std::int64_t F,
                                Weights<Math<T>> weights) {
  using M = Math<T>;
  using V = Vector<T, width>;
  const std::int64_t row = blockIdx.x;
  const std::int32_t slot = weighted ? weights.slots[row] : 0;
  const M weight = weighted ? weights.values[slot] : M(1);
  M along = 0;  // upstream times what the weight is multiplied with
  V *gates = reinterpret_cast<V*>(gate_up + row * 2 * F),
    *ups = reinterpret_cast<V*>(gate_up + row * 2 * F + F);
  V* dys = reinterpret_cast<V*>(dy + row * F);
  for (std::int64_t i = threadIdx.x; i < F / width; i += blockDim.x) {
    V g = gates[i], u = ups[i];
    V d = dys[i];
#pragma unroll
    for (int k = 0; k < width; ++k) {
      const M upstream = widen(d.element[k]);
      const GateGradient<M> of = gradient<activation>(widen(g.element[k]), widen(u.element[k]),
                                                      weighted ? weight * upstream : upstream);
      if constexpr (weighted) along = fma(upstream, of.gated, along);
      if constexpr (again) d.element[k] = narrow<T>(weighted ? weight * of.gated : of.gated);
      g.element[k] = narrow<T>(of.gate);
      u.element[k] = narrow<T>(of.up);
    }
    gates[i] = g;
    ups[i] = u;
    if constexpr (again) dys[i] = d;
  }
  if constexpr (weighted) {
    __shared__ M scratch[33];
    along = block_sum(along, scratch);
    if (threadIdx.x == 0) weights.gradients[slot] = along;
  }
}

template <class T, bool again, Activation activation, bool weighted>
void backward_of(std::int64_t N, std::int64_t F, T* upstream, T* values, Weights<Math<T>> weights,
                 cudaStream_t stream) {
  constexpr int width = full_width<T>;
  const std::int64_t half_row = F * static_cast<std::int64_t>(sizeof(T));
  const auto rows = static_cast<unsigned>(N);
  if (aligned_16(upstream, half_row) && aligned_16(values, half_row))
    backward_kernel<T, width, again, activation, weighted>
        <<<rows, threads_for(F / width, 256), 0, stream>>>(upstream, values, F, weights);
  else
    backward_kernel<T, 1, again, activation, weighted>
        <<<rows, threads_for(F, 256), 0, stream>>>(upstream, values, F, weights);
}

template <class T, Activation activation, bool weighted>
void forward_of(std::int64_t N, std::int64_t F, const T* in, T* out, Weights<Math<T>> weights,
                cudaStream_t stream) {
  constexpr int width = full_width<T>;
  const std::int64_t half_row = F * static_cast<std::int64_t>(sizeof(T));
  const auto rows = static_cast<unsigned>(N);
  if (aligned_16(in, half_row) && aligned_16(out, half_row))
    forward_kernel<T, width, activation, weighted>
        <<<rows, threads_for(F / width, 256), 0, stream>>>(in, out, F, weights);
  else
    forward_kernel<T, 1, activation, weighted><<<rows, threads_for(F, 256), 0, stream>>>(in, out, F, weights);
}

/// Calls `call` with an element, the activation and whether rows are weighted, all as constants.
template <class Call>
void with_kernel(Dtype dtype, Activation activation, const RowPointers* weights, const Call& call) {
  with_element(dtype, [&](auto element) {
    using M = Math<decltype(element)>;
    with_activation(activation, [&](auto chosen) {
      if (weights)
        call(element, chosen, std::true_type{},
             Weights<M>{static_cast<const M*>(weights->values), weights->slots,
                        static_cast<M*>(weights->gradients)});
      else
        call(element, chosen, std::false_type{}, Weights<M>{});
    });
  });
  ASSAY_CUDA_CHECK_LAUNCH();
}

}  // namespace

void launch_forward(Dtype dtype, Activation activation, std::int64_t N, std::int64_t F, const void* gate_up,
                    void* y, const RowPointers* weights, cudaStream_t stream) {
  if (N == 0) return;
  with_kernel(dtype, activation, weights, [&](auto element, auto of, auto weighted, auto on_device) {
    using T = decltype(element);
    forward_of<T, decltype(of)::value, decltype(weighted)::value>(N, F, static_cast<const T*>(gate_up),
                                                                  static_cast<T*>(y), on_device, stream);
  });
}

void launch_backward(Dtype dtype, Activation activation, std::int64_t N, std::int64_t F, void* dy,
                     void* gate_up, ForwardValue value, const RowPointers* weights, cudaStream_t stream) {
  if (N == 0) return;
  with_kernel(dtype, activation, weights, [&](auto element, auto of, auto weighted, auto on_device) {
    using T = decltype(element);
    auto* upstream = static_cast<T*>(dy);
    auto* values = static_cast<T*>(gate_up);
    if (value == ForwardValue::again)
      backward_of<T, true, decltype(of)::value, decltype(weighted)::value>(N, F, upstream, values, on_device,
                                                                           stream);
    else
      backward_of<T, false, decltype(of)::value, decltype(weighted)::value>(N, F, upstream, values, on_device,
                                                                            stream);
  });
}

}  // namespace assay::impl::swiglu::cuda
