#pragma once
// Sum over the rows of a small matrix in a fixed order: the second half of every gain's gradient.
#include "impl/ops/cuda_launch.hpp"

namespace assay::impl::cuda {

/// sum[d] += sum over rows of partial[row, d]: 8 warps share the rows of 32 columns, and the first adds their
/// sums in order.
template <class M>
__global__ void add_rows_kernel(const M* __restrict__ partial, M* __restrict__ sum, std::int64_t rows,
                                std::int64_t D) {
  __shared__ M sums[8][32];
  const std::int64_t d = static_cast<std::int64_t>(blockIdx.x) * 32 + threadIdx.x;
  M mine = 0;
  if (d < D)
    for (std::int64_t row = threadIdx.y; row < rows; row += 8) mine += partial[row * D + d];
  sums[threadIdx.y][threadIdx.x] = mine;
  __syncthreads();
  if (threadIdx.y > 0 || d >= D) return;
  M total = 0;
  for (int part = 0; part < 8; ++part) total += sums[part][threadIdx.x];
  sum[d] += total;
}

/// partial [rows, D], sum [D].
template <class M>
void add_rows(const M* partial, M* sum, std::int64_t rows, std::int64_t D, cudaStream_t stream) {
  add_rows_kernel<M><<<static_cast<unsigned>((D + 31) / 32), dim3(32, 8), 0, stream>>>(partial, sum, rows, D);
  ASSAY_CUDA_CHECK_LAUNCH();
}

}  // namespace assay::impl::cuda
