// AdamW over a flat range: gradient, master and moments are read once, written once, 16 bytes at a time.
#include "impl/ops/adamw_launch.hpp"
#include "impl/ops/cuda_vector.cuh"

namespace assay::impl::adamw::cuda {

using namespace assay::impl::cuda;

namespace {

/// Scalars of an update in the state's arithmetic.
template <class S>
struct Scalars {
  S new1;         ///< 1 - beta1, rounded once
  S kept2, new2;  ///< beta2 and 1 - beta2
  S eps, gradient_scale, decay, step_size, root_correction;
};

/// master, m and v of one element, in the order of operations of spec/ops/adamw.md.
template <class S>
__device__ __forceinline__ void update_element(S& p, S& m, S& v, S g, const Scalars<S>& a) {
  g *= a.gradient_scale;
  p *= a.decay;
  m += a.new1 * (g - m);
  v = a.kept2 * v + a.new2 * g * g;
  p -= a.step_size * m / (sqrt(v) / a.root_correction + a.eps);
}

/// The working weight: bf16 by way of fp32, as everywhere else in the trainer.
template <class W, class S>
__device__ __forceinline__ W rounded_to(S value) {
  if constexpr (sizeof(W) == 2)
    return static_cast<W>(static_cast<float>(value));
  else
    return static_cast<W>(value);
}

template <class W, class S, int width>
__global__ void update_kernel(W* __restrict__ weight, S* __restrict__ master, const S* __restrict__ gradient,
                              S* __restrict__ moment1, S* __restrict__ moment2, std::int64_t n, Scalars<S> a,
                              const double* __restrict__ coefficient, bool separate) {
  if (coefficient) {
    if (isnan(*coefficient)) return;
    a.gradient_scale = static_cast<S>(*coefficient);
  }
  using VS = Vector<S, width>;
  using VW = Vector<W, width>;
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n / width;
       i += stride) {
    VS p = reinterpret_cast<VS*>(master)[i], m = reinterpret_cast<VS*>(moment1)[i];
    VS v = reinterpret_cast<VS*>(moment2)[i];
    const VS g = reinterpret_cast<const VS*>(gradient)[i];
    VW w;
#pragma unroll
    for (int k = 0; k < width; ++k) {
      update_element(p.element[k], m.element[k], v.element[k], g.element[k], a);
      w.element[k] = rounded_to<W>(p.element[k]);
    }
    reinterpret_cast<VS*>(master)[i] = p;
    reinterpret_cast<VS*>(moment1)[i] = m;
    reinterpret_cast<VS*>(moment2)[i] = v;
    if (separate) reinterpret_cast<VW*>(weight)[i] = w;
  }
}

template <class W, class S, int width>
void launch_as(const Arguments& a, cudaStream_t stream) {
  const Scalars<S> scalars{.new1 = static_cast<S>(1 - a.beta1),
                           .kept2 = static_cast<S>(a.beta2),
                           .new2 = static_cast<S>(1 - a.beta2),
                           .eps = static_cast<S>(a.eps),
                           .gradient_scale = static_cast<S>(a.gradient_scale),
                           .decay = static_cast<S>(a.decay),
                           .step_size = static_cast<S>(a.step_size),
                           .root_correction = static_cast<S>(a.root_correction)};
  constexpr int threads = 256;
  const std::int64_t blocks = (a.n / width + threads - 1) / threads;
  update_kernel<W, S, width><<<static_cast<unsigned>(blocks < 8192 ? blocks : 8192), threads, 0, stream>>>(
      static_cast<W*>(a.weight), static_cast<S*>(a.master), static_cast<const S*>(a.gradient),
      static_cast<S*>(a.moment1), static_cast<S*>(a.moment2), a.n, scalars, a.coefficient,
      a.weight != a.master);
  ASSAY_CUDA_CHECK_LAUNCH();
}

template <class W, class S>
void launch_of(const Arguments& a, cudaStream_t stream) {
  constexpr int width = full_width<S>;
  const auto bytes = a.n * static_cast<std::int64_t>(sizeof(S));
  const bool wide = aligned_16(a.master, bytes) && aligned_16(a.gradient, bytes) &&
                    aligned_16(a.moment1, bytes) && aligned_16(a.moment2, bytes) &&
                    reinterpret_cast<std::uintptr_t>(a.weight) % (sizeof(W) * width) == 0;
  wide ? launch_as<W, S, width>(a, stream) : launch_as<W, S, 1>(a, stream);
}

}  // namespace

void launch(const Arguments& a, cudaStream_t stream) {
  if (a.n == 0) return;
  const bool rounded = a.weight_dtype == Dtype::bf16;
  if (a.state_dtype == Dtype::f64)
    return rounded ? launch_of<__nv_bfloat16, double>(a, stream) : launch_of<double, double>(a, stream);
  if (rounded) return launch_of<__nv_bfloat16, float>(a, stream);
  return launch_of<float, float>(a, stream);
}

}  // namespace assay::impl::adamw::cuda
