// The other orientation of codes that are there: tiles and their way through shared memory are those of
// quantise_tile.cuh.
#include "impl/ops/quantise/quantise_tile.cuh"

namespace assay::impl::quantise::cuda {

namespace {

struct Codes {
  static constexpr int height = 8;  // rows of a patch, 8 codes wide
  const std::uint8_t* codes;
  bool wide;  // 8-byte loads of every row

  /// 8 codes of a row, zero beyond the matrix.
  __device__ __forceinline__ uint2 load(int row, int column, int R, int C) const {
    if (row >= R || column >= C) return {0, 0};
    const std::uint8_t* from = codes + std::int64_t{row} * C + column;
    if (wide) return *reinterpret_cast<const uint2*>(from);
    std::uint32_t words[2] = {};
#pragma unroll
    for (int j = 0; j < patch_width; ++j)
      if (column + j < C) words[j / 4] |= std::uint32_t{from[j]} << 8 * (j % 4);
    return {words[0], words[1]};
  }
};
constexpr int threads = patches_across * tile_extent / Codes::height;

/// Byte `k` of four words.
__device__ __forceinline__ std::uint32_t byte_of(int k, std::uint32_t a, std::uint32_t b, std::uint32_t c,
                                                 std::uint32_t d) {
  const unsigned both = static_cast<unsigned>(k | (k + 4) << 4);
  return __byte_perm(__byte_perm(a, b, both), __byte_perm(c, d, both), 0x5410);
}

__global__ void __launch_bounds__(threads)
    transpose_kernel(const __grid_constant__ Codes source, const __grid_constant__ Target target, int R,
                     int C, Tiles tiles) {
  __shared__ alignas(16) Turned turned;
  const Place p = tiles.place<Codes>(blockIdx.x, R, C);
  uint2 row[Codes::height];
#pragma unroll
  for (int i = 0; i < Codes::height; ++i) row[i] = source.load(p.row + i, p.column, R, C);
#pragma unroll
  for (int j = 0; j < patch_width; ++j) {
    const auto word = [&](int first) {
      return j < 4 ? byte_of(j, row[first].x, row[first + 1].x, row[first + 2].x, row[first + 3].x)
                   : byte_of(j - 4, row[first].y, row[first + 1].y, row[first + 2].y, row[first + 3].y);
    };
    std::uint32_t* to = &turned[p.x * patch_width + j][p.y * (Codes::height / 4) ^ 2 * p.x];
    *reinterpret_cast<uint2*>(to) = {word(0), word(4)};
  }
  store_columns<threads>(turned, target, p);
}

}  // namespace

void launch_transpose(const void* codes, const Job& job) {
  const Tiles tiles = tiles_of(job);
  const bool wide = job.C % patch_width == 0 && reinterpret_cast<std::uintptr_t>(codes) % sizeof(uint2) == 0;
  transpose_kernel<<<tiles.count(), threads, 0, job.stream>>>(
      Codes{static_cast<const std::uint8_t*>(codes), wide}, job.targets[0], static_cast<int>(job.R),
      static_cast<int>(job.C), tiles);
  ASSAY_CUDA_CHECK_LAUNCH();
}

}  // namespace assay::impl::quantise::cuda
