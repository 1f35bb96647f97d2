// Quantisation of what other ops compute, which never reaches memory in bf16: the norm's y, the gate's y, the
// gate's gradient. Values are rounded to bf16 first, as those ops round them: the bits are those of
// quantising their results.
#include "impl/ops/quantise/quantise_tile.cuh"
#include "impl/ops/swiglu/swiglu_gate.cuh"

namespace assay::impl::quantise::cuda {

namespace {

using swiglu::cuda::with_activation;

/// Patches of 4 rows: a thread holds up to three of them.
struct Fused {
  using Element = __nv_bfloat16;
  static constexpr int height = 4;
  using Patch = quantise::cuda::Patch<Element, height>;
};

/// Rows of a matrix [R, pitch] from a column on; zero where `inside` is false.
__device__ __forceinline__ void load(Fused::Patch& patch, const __nv_bfloat16* from, std::int64_t pitch,
                                     int rows, bool inside) {
#pragma unroll
  for (int i = 0; i < Fused::height; ++i)
    if (inside && i < rows)
      patch.load(i, from + i * pitch);
    else
      patch.clear(i);
}

struct Norm : Fused {
  static constexpr int outputs = 1;
  const __nv_bfloat16* x;
  const float *rstd, *gain;
  int R, C;

  __device__ __forceinline__ void load(int row, int column, Patch (&out)[outputs]) const {
    const bool inside = column < C;
    cuda::load(out[0], x + std::int64_t{row} * C + column, C, R - row, inside);
    Vector<float, patch_width> gains = {};
    if (inside) gains = *reinterpret_cast<const Vector<float, patch_width>*>(gain + column);
#pragma unroll
    for (int i = 0; i < height; ++i) {
      const float r = row + i < R ? rstd[row + i] : 0;
#pragma unroll
      for (int j = 0; j < patch_width; j += 2)
        out[0].set_pair(i, j, out[0].at(i, j) * r * gains.element[j],
                        out[0].at(i, j + 1) * r * gains.element[j + 1]);
    }
  }
};

template <spec::swiglu::Activation activation>
struct Gate : Fused {
  static constexpr int outputs = 1;
  const __nv_bfloat16* gate_up;
  int R, C;

  __device__ __forceinline__ void load(int row, int column, Patch (&out)[outputs]) const {
    Patch up;
    const __nv_bfloat16* from = gate_up + std::int64_t{row} * 2 * C + column;
    cuda::load(out[0], from, 2 * std::int64_t{C}, R - row, column < C);
    cuda::load(up, from + C, 2 * std::int64_t{C}, R - row, column < C);
#pragma unroll
    for (int i = 0; i < height; ++i)
#pragma unroll
      for (int j = 0; j < patch_width; j += 2)
        out[0].set_pair(i, j, swiglu::cuda::gated<activation>(out[0].at(i, j), up.at(i, j)),
                        swiglu::cuda::gated<activation>(out[0].at(i, j + 1), up.at(i, j + 1)));
  }
};

/// Gradient of gate, gradient of up and, `again`, forward's value.
template <spec::swiglu::Activation activation, bool again>
struct GateGradient : Fused {
  static constexpr int outputs = again ? 3 : 2;
  const __nv_bfloat16 *dy, *gate_up;
  int R, C;

  __device__ __forceinline__ void load(int row, int column, Patch (&out)[outputs]) const {
    Patch upstream;
    const __nv_bfloat16* from = gate_up + std::int64_t{row} * 2 * C + column;
    cuda::load(out[0], from, 2 * std::int64_t{C}, R - row, column < C);
    cuda::load(out[1], from + C, 2 * std::int64_t{C}, R - row, column < C);
    cuda::load(upstream, dy + std::int64_t{row} * C + column, C, R - row, column < C);
#pragma unroll
    for (int i = 0; i < height; ++i)
#pragma unroll
      for (int j = 0; j < patch_width; j += 2) {
        const auto of = [&](int k) {
          return swiglu::cuda::gradient<activation>(out[0].at(i, k), out[1].at(i, k), upstream.at(i, k));
        };
        const auto first = of(j), second = of(j + 1);
        out[0].set_pair(i, j, first.gate, second.gate);
        out[1].set_pair(i, j, first.up, second.up);
        if constexpr (again) out[2].set_pair(i, j, first.gated, second.gated);
      }
  }
};

template <class Call>
void with_source(const NormSource& source, const Job& job, const Call& call) {
  call(Norm{{},
            static_cast<const __nv_bfloat16*>(source.x),
            static_cast<const float*>(source.rstd),
            static_cast<const float*>(source.gain),
            static_cast<int>(job.R),
            static_cast<int>(job.C)});
}
template <class Call>
void with_source(const GateSource& source, const Job& job, const Call& call) {
  with_activation(source.activation, [&](auto activation) {
    call(Gate<decltype(activation)::value>{{},
                                           static_cast<const __nv_bfloat16*>(source.gate_up),
                                           static_cast<int>(job.R),
                                           static_cast<int>(job.C)});
  });
}
template <class Call>
void with_source(const GateGradientSource& source, const Job& job, const Call& call) {
  const auto *dy = static_cast<const __nv_bfloat16*>(source.dy),
             *gate_up = static_cast<const __nv_bfloat16*>(source.gate_up);
  with_activation(source.activation, [&](auto activation) {
    if (job.count == 3)
      call(GateGradient<decltype(activation)::value, true>{
          {}, dy, gate_up, static_cast<int>(job.R), static_cast<int>(job.C)});
    else
      call(GateGradient<decltype(activation)::value, false>{
          {}, dy, gate_up, static_cast<int>(job.R), static_cast<int>(job.C)});
  });
}

template <class Source>
void launch_amax_of(const Source& source, const Job& job) {
  with_source(source, job, [&](const auto& of) { amax_of(of, job); });
}
template <class Source>
void launch_quantise_of(const Source& source, Scaling scaling, const Job& job) {
  with_scaling(scaling, [&](auto chosen) {
    with_source(source, job, [&](const auto& of) { quantise_of<decltype(chosen)::value>(of, job); });
  });
}

bool rows_of_vectors(const void* x, std::int64_t C) {
  return C % patch_width == 0 && aligned_16(x, C * static_cast<std::int64_t>(sizeof(__nv_bfloat16)));
}

}  // namespace

void launch_amax(const NormSource& source, const Job& job) { launch_amax_of(source, job); }
void launch_amax(const GateSource& source, const Job& job) { launch_amax_of(source, job); }
void launch_amax(const GateGradientSource& source, const Job& job) { launch_amax_of(source, job); }

void launch_quantise(const NormSource& source, Scaling scaling, const Job& job) {
  launch_quantise_of(source, scaling, job);
}
void launch_quantise(const GateSource& source, Scaling scaling, const Job& job) {
  launch_quantise_of(source, scaling, job);
}
void launch_quantise(const GateGradientSource& source, Scaling scaling, const Job& job) {
  launch_quantise_of(source, scaling, job);
}

bool fits(const NormSource& source, Scaling, std::int64_t C) {
  return rows_of_vectors(source.x, C) && aligned_gain(source.gain);
}
bool fits(const GateSource& source, Scaling, std::int64_t C) { return rows_of_vectors(source.gate_up, C); }
bool fits(const GateGradientSource& source, Scaling scaling, std::int64_t C) {
  const std::int64_t block = scaling == Scaling::tensor ? 1 : scaling == Scaling::mx_1x32 ? 32 : 128;
  return rows_of_vectors(source.gate_up, C) && rows_of_vectors(source.dy, C) && C % block == 0;
}

}  // namespace assay::impl::quantise::cuda
