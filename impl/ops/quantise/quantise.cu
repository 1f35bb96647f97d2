// Quantisation of a matrix in memory; the kernel is in quantise_tile.cuh.
#include "impl/ops/quantise/quantise_tile.cuh"

namespace assay::impl::quantise::cuda {

namespace {

template <class T, int rows>
struct Matrix {
  using Element = T;
  static constexpr int height = rows, outputs = 1;
  const T* x;
  int R, C;
  bool wide;  // 16-byte accesses to every row

  __device__ __forceinline__ void load(int row, int column, Patch<T, height> (&out)[outputs]) const {
    const T* from = x + std::int64_t{row} * C + column;
    if (wide) {
#pragma unroll
      for (int i = 0; i < height; ++i)
        if (row + i < R && column < C)
          out[0].load(i, from + std::int64_t{i} * C);
        else
          out[0].clear(i);
    } else {
#pragma unroll
      for (int i = 0; i < height; ++i)
        out[0].load_some(i, from + std::int64_t{i} * C, row + i < R ? C - column : 0);
    }
  }
};

/// Calls `call` with the source. `rows` of a patch: more loads of a thread under way at once, more registers.
template <int rows, class Call>
void with_matrix(const MatrixSource& source, const Job& job, const Call& call) {
  const auto as = [&](auto element) {
    using T = decltype(element);
    // A patch lies within the columns or outside of them.
    const bool wide =
        job.C % patch_width == 0 && aligned_16(source.x, job.C * static_cast<std::int64_t>(sizeof(T)));
    constexpr int height = sizeof(T) == 2 ? rows : 4;
    call(Matrix<T, height>{static_cast<const T*>(source.x), static_cast<int>(job.R), static_cast<int>(job.C),
                           wide});
  };
  switch (source.dtype) {
    case Dtype::bf16:
      return as(__nv_bfloat16{});
    case Dtype::f32:
      return as(float{});
    case Dtype::f64:
      break;
  }
  throw UserError(ExitCode::bug, "quantise: no kernel for fp64; give bf16 or fp32, or use the CPU");
}

}  // namespace

void launch_amax(const MatrixSource& source, const Job& job) {
  with_matrix<4>(source, job, [&](const auto& matrix) { amax_of(matrix, job); });
}

void launch_quantise(const MatrixSource& source, Scaling scaling, const Job& job) {
  with_scaling(scaling, [&](auto chosen) {
    constexpr Scaling constant = decltype(chosen)::value;
    constexpr int rows =
        constant == Scaling::tensor ? 8 : 4;  // block scalings keep the scales of a patch, too
    with_matrix<rows>(source, job, [&](const auto& matrix) { quantise_of<constant>(matrix, job); });
  });
}

}  // namespace assay::impl::quantise::cuda
