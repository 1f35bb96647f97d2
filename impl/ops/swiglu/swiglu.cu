// swiglu on the GPU: one block per row, each value read and written once. One exp and one division an entry:
// at the memory's rate there is time for little more.
#include "impl/ops/cuda_vector.cuh"
#include "impl/ops/swiglu/swiglu_gate.cuh"
#include "impl/ops/swiglu/swiglu_launch.hpp"

namespace assay::impl::swiglu::cuda {

using namespace assay::impl::cuda;

namespace {

template <class T, int width, Activation activation>
__global__ void forward_kernel(const T* __restrict__ gate_up, T* __restrict__ y, std::int64_t F) {
  using V = Vector<T, width>;
  const std::int64_t row = blockIdx.x;
  const V *gates = reinterpret_cast<const V*>(gate_up + row * 2 * F),
          *ups = reinterpret_cast<const V*>(gate_up + row * 2 * F + F);
  V* ys = reinterpret_cast<V*>(y + row * F);
  for (std::int64_t i = threadIdx.x; i < F / width; i += blockDim.x) {
    const V g = gates[i], u = ups[i];
    V out;
#pragma unroll
    for (int k = 0; k < width; ++k)
      out.element[k] = narrow<T>(gated<activation>(widen(g.element[k]), widen(u.element[k])));
    ys[i] = out;
  }
}

/// `again`: forward's value is written over dy, else dy is only read.
template <class T, int width, bool again, Activation activation>
__global__ void backward_kernel(T* __restrict__ dy, T* __restrict__ gate_up, std::int64_t F) {
  using M = Math<T>;
  using V = Vector<T, width>;
  const std::int64_t row = blockIdx.x;
  V *gates = reinterpret_cast<V*>(gate_up + row * 2 * F),
    *ups = reinterpret_cast<V*>(gate_up + row * 2 * F + F);
  V* dys = reinterpret_cast<V*>(dy + row * F);
  for (std::int64_t i = threadIdx.x; i < F / width; i += blockDim.x) {
    V g = gates[i], u = ups[i];
    V d = dys[i];
#pragma unroll
    for (int k = 0; k < width; ++k) {
      const GateGradient<M> of =
          gradient<activation>(widen(g.element[k]), widen(u.element[k]), widen(d.element[k]));
      if constexpr (again) d.element[k] = narrow<T>(of.gated);
      g.element[k] = narrow<T>(of.gate);
      u.element[k] = narrow<T>(of.up);
    }
    gates[i] = g;
    ups[i] = u;
    if constexpr (again) dys[i] = d;
  }
}

template <class T, bool again, Activation activation>
void backward_of(std::int64_t N, std::int64_t F, T* upstream, T* values, cudaStream_t stream) {
  constexpr int width = full_width<T>;
  const std::int64_t half_row = F * static_cast<std::int64_t>(sizeof(T));
  const auto rows = static_cast<unsigned>(N);
  if (aligned_16(upstream, half_row) && aligned_16(values, half_row))
    backward_kernel<T, width, again, activation>
        <<<rows, threads_for(F / width, 256), 0, stream>>>(upstream, values, F);
  else
    backward_kernel<T, 1, again, activation><<<rows, threads_for(F, 256), 0, stream>>>(upstream, values, F);
}

template <class T, Activation activation>
void forward_of(std::int64_t N, std::int64_t F, const T* in, T* out, cudaStream_t stream) {
  constexpr int width = full_width<T>;
  const std::int64_t half_row = F * static_cast<std::int64_t>(sizeof(T));
  const auto rows = static_cast<unsigned>(N);
  if (aligned_16(in, half_row) && aligned_16(out, half_row))
    forward_kernel<T, width, activation><<<rows, threads_for(F / width, 256), 0, stream>>>(in, out, F);
  else
    forward_kernel<T, 1, activation><<<rows, threads_for(F, 256), 0, stream>>>(in, out, F);
}

}  // namespace

void launch_forward(Dtype dtype, Activation activation, std::int64_t N, std::int64_t F, const void* gate_up,
                    void* y, cudaStream_t stream) {
  if (N == 0) return;
  with_element(dtype, [&](auto element) {
    using T = decltype(element);
    with_activation(activation, [&](auto chosen) {
      forward_of<T, decltype(chosen)::value>(N, F, static_cast<const T*>(gate_up), static_cast<T*>(y),
                                             stream);
    });
  });
  ASSAY_CUDA_CHECK_LAUNCH();
}

void launch_backward(Dtype dtype, Activation activation, std::int64_t N, std::int64_t F, void* dy,
                     void* gate_up, ForwardValue value, cudaStream_t stream) {
  if (N == 0) return;
  with_element(dtype, [&](auto element) {
    using T = decltype(element);
    auto* upstream = static_cast<T*>(dy);
    auto* values = static_cast<T*>(gate_up);
    with_activation(activation, [&](auto chosen) {
      constexpr Activation of = decltype(chosen)::value;
      if (value == ForwardValue::again)
        backward_of<T, true, of>(N, F, upstream, values, stream);
      else
        backward_of<T, false, of>(N, F, upstream, values, stream);
    });
  });
  ASSAY_CUDA_CHECK_LAUNCH();
}

}  // namespace assay::impl::swiglu::cuda
