#pragma once
// Quantisation on the GPU as one pass over tiles of 128 x 128 entries: a block holds what both orientations
// need, from the entries of a tile to the scales of its blocks. What is quantised comes from a source, which
// gives a thread the values of its patch: `height` rows of 8 columns, lanes side by side along a row. Codes
// of `rows` leave from registers, 128 bytes of a row at a time; codes of `columns` turn in shared memory.
#include <cuda_fp8.h>

#include <limits>

#include "impl/ops/cuda_amax.cuh"
#include "impl/ops/cuda_vector.cuh"
#include "impl/ops/quantise/quantise_launch.hpp"
#include "impl/ops/quantise/scale_layout.hpp"

namespace assay::impl::quantise::cuda {

using namespace assay::impl::cuda;

/// Entries of a tile each way, columns of a patch, patches side by side.
constexpr int tile_extent = 128, patch_width = 8, patches_across = tile_extent / patch_width;

/// What a thread holds, as the words it was loaded in.
template <class T, int rows>
class Patch {
 public:
  static constexpr int height = rows;

  __device__ __forceinline__ float at(int i, int j) const {
    if constexpr (sizeof(T) == 4) return __uint_as_float(word_[i][j]);
    const std::uint32_t pair = word_[i][j / 2];
    return __uint_as_float(j % 2 ? pair & 0xffff0000u : pair << 16);
  }
  /// Entries (i, j) and (i, j + 1), rounded to bf16; j is even.
  __device__ __forceinline__ void set_pair(int i, int j, float first, float second) {
    static_assert(sizeof(T) == 2);
    const Vector<T, 2> pair{{narrow<T>(first), narrow<T>(second)}};
    memcpy(&word_[i][j / 2], &pair, sizeof pair);
  }
  __device__ __forceinline__ void clear(int i) {
#pragma unroll
    for (int w = 0; w < words; ++w) word_[i][w] = 0;
  }
  /// Row i from 16-byte aligned memory.
  __device__ __forceinline__ void load(int i, const T* from) {
#pragma unroll
    for (int w = 0; w < words; w += 4) {
      const uint4 four = *reinterpret_cast<const uint4*>(from + w * 4 / static_cast<int>(sizeof(T)));
      word_[i][w] = four.x, word_[i][w + 1] = four.y, word_[i][w + 2] = four.z, word_[i][w + 3] = four.w;
    }
  }
  /// The first `count` entries of row i, each for itself; the rest are zero.
  __device__ __forceinline__ void load_some(int i, const T* from, int count) {
    Vector<T, patch_width> row;
#pragma unroll
    for (int j = 0; j < patch_width; ++j) row.element[j] = j < count ? from[j] : T(0.0F);
    memcpy(word_[i], &row, sizeof row);
  }

 private:
  static constexpr int words = patch_width * static_cast<int>(sizeof(T)) / 4;
  std::uint32_t word_[rows][words];
};

/// A source has `height` (rows of a patch), `outputs` (patches that it gives), `Element`, and
/// load(row, column, patches): the patches at (row, column), zero beyond its edges.
template <class Source>
using PatchOf = Patch<typename Source::Element, Source::height>;
template <class Source>
constexpr int threads_of = patches_across* tile_extent / Source::height;

template <int count>
struct Targets {
  Target of[count];
};

/// Where a thread's patch is.
struct Place {
  int R, C;                     // of the source
  int first_row, first_column;  // of the tile
  int x, y;                     // of the patch: first_column + x * patch_width, first_row + y * height
  int row, column;              // of the patch
};

/// Tiles of a source. They go down in bands, so that blocks at work at one time write neighbouring parts of
/// the rows of both orientations: DRAM likes more than the 128 bytes that one tile has of a row.
struct Tiles {
  static constexpr unsigned band = 8;
  unsigned across, down;
  __host__ __device__ __forceinline__ unsigned count() const { return across * down; }

  template <class Source>
  __device__ __forceinline__ Place place(unsigned tile, int R, int C) const {
    const unsigned first = tile / (across * band) * band, rows = min(band, down - first);
    const unsigned in_band = tile % (across * band);
    Place p{R, C, static_cast<int>((first + in_band % rows) * tile_extent),
            static_cast<int>(in_band / rows * tile_extent)};
    p.x = static_cast<int>(threadIdx.x) % patches_across,
    p.y = static_cast<int>(threadIdx.x) / patches_across;
    p.row = p.first_row + p.y * Source::height, p.column = p.first_column + p.x * patch_width;
    return p;
  }
};

/// Exponent field of the fp32 number 2^e that scales a block whose largest magnitude has these bits; 255,
/// NaN, where that is not finite. e is the least with |x| <= 1.75 2^top 2^e: a mantissa above 1.75 carries
/// into the exponent.
template <Format format>
__device__ __forceinline__ unsigned scale_field(unsigned amax) {
  constexpr int top = format == Format::e4m3 ? 8 : 15;
  constexpr unsigned above_1_75 = 0x7fffff - 0x600000;
  if (amax >= 0x7f800000u) return 255;
  if (amax == 0) return 127;
  return static_cast<unsigned>(max(static_cast<int>((amax + above_1_75) >> 23) - top, 1));
}
constexpr unsigned nan_bits = 0x7fc00000u;
__device__ __forceinline__ float scale_of(unsigned field) {
  return __uint_as_float(field == 255 ? nan_bits : field << 23);
}
__device__ __forceinline__ float inverse_of(unsigned field) {
  return __uint_as_float(field == 255 ? nan_bits : (254 - field) << 23);
}

template <Scaling scaling>
__device__ __forceinline__ void write_scale(void* scales, std::int64_t at, unsigned field) {
  if constexpr (scaling == Scaling::mx_1x32)
    static_cast<std::uint8_t*>(scales)[at] = static_cast<std::uint8_t>(field);
  else
    static_cast<float*>(scales)[at] = scale_of(field);
}

/// GPUs before 8.9 convert by some hundred instructions: inlined, as an instruction is, they would be most of
/// the time that all kernels take to compile.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 890
#define ASSAY_INLINE_CONVERSION __noinline__
#else
#define ASSAY_INLINE_CONVERSION __forceinline__
#endif
template <Format format>
__device__ ASSAY_INLINE_CONVERSION std::uint32_t encode4(float a, float b, float c, float d) {
  constexpr auto interpretation = format == Format::e4m3 ? __NV_E4M3 : __NV_E5M2;
  const std::uint32_t low = __nv_cvt_float2_to_fp8x2({a, b}, __NV_SATFINITE, interpretation),
                      high = __nv_cvt_float2_to_fp8x2({c, d}, __NV_SATFINITE, interpretation);
  return low | high << 16;
}

/// Codes of a tile with a column's 128 rows side by side, as words of 4 rows. Word w of column c is at
/// w ^ 2 (c / 8): then no two lanes of an access share a bank, neither where patches are written nor where
/// columns are read.
using Turned = std::uint32_t[tile_extent][tile_extent / 4];

struct Shared {
  alignas(16) Turned turned;
  /// Bits of the largest magnitudes, of up to 4 blocks along the summed axis: of rows, of columns x * 8 + j.
  unsigned of_row[4][tile_extent], of_column[4][patch_width][patches_across];
};

/// Inverse scales of the rows and columns of a patch; writes the scales of the blocks that begin in it.
/// Entered and left by all threads together.
template <Format format, Scaling scaling, class P>
__device__ __forceinline__ void find_scales(const P& patch, const Target& target, const Place& p,
                                            Shared& shared, float (&of_row)[P::height],
                                            float (&of_column)[patch_width]) {
  constexpr bool along_axis = scaling == Scaling::block_1x128 || scaling == Scaling::mx_1x32;
  constexpr int extent = scaling == Scaling::mx_1x32 ? 32 : 128;  // of a block, along the summed axis
  const auto blocks = [](std::int64_t entries) { return (entries + extent - 1) / extent; };
  const auto layout_of = [&](std::int64_t rows, std::int64_t columns) {
    return ScaleLayout{scaling, scaling == Scaling::block_128x128 ? blocks(rows) : rows, blocks(columns)};
  };
  const ScaleLayout row_layout = layout_of(p.R, target.width), column_layout = layout_of(target.width, p.R);

  if constexpr (!along_axis) {  // one scale, both ways
    unsigned most = 0;
    if constexpr (scaling == Scaling::tensor) {
      most = __float_as_uint(*target.amax);
    } else {
      unsigned& of_tile = shared.of_row[0][0];
      if (threadIdx.x == 0) of_tile = 0;
#pragma unroll
      for (int i = 0; i < P::height; ++i)
#pragma unroll
        for (int j = 0; j < patch_width; ++j) most = max(most, magnitude_bits(patch.at(i, j)));
      most = __reduce_max_sync(0xffffffffu, most);
      __syncthreads();
      if (threadIdx.x % 32 == 0) atomicMax(&of_tile, most);
      __syncthreads();
      most = of_tile;
    }
    const unsigned field = scale_field<format>(most);
#pragma unroll
    for (float& inverse : of_row) inverse = inverse_of(field);
#pragma unroll
    for (float& inverse : of_column) inverse = inverse_of(field);
    const bool first = threadIdx.x == 0 && (scaling != Scaling::tensor || blockIdx.x == 0);
    const std::int64_t row = p.first_row / extent, column = (target.first + p.first_column) / extent;
    if (first && target.row_scales)
      write_scale<scaling>(target.row_scales, row_layout.at(row, column), field);
    if (first && target.column_scales)
      write_scale<scaling>(target.column_scales, column_layout.at(column, row), field);
  } else {
    unsigned in_row[P::height] = {}, in_column[patch_width] = {};
#pragma unroll
    for (int i = 0; i < P::height; ++i)
#pragma unroll
      for (int j = 0; j < patch_width; ++j) {
        const unsigned bits = magnitude_bits(patch.at(i, j));
        in_row[i] = max(in_row[i], bits), in_column[j] = max(in_column[j], bits);
      }
    // Of a row: over the lanes that share its block.
    constexpr int lanes = extent / patch_width, groups = tile_extent / extent;
#pragma unroll
    for (int i = 0; i < P::height; ++i) {
#pragma unroll
      for (int apart = lanes / 2; apart > 0; apart /= 2)
        in_row[i] = max(in_row[i], __shfl_xor_sync(0xffffffffu, in_row[i], apart));
      of_row[i] = inverse_of(scale_field<format>(in_row[i]));
      if (p.x % lanes == 0) shared.of_row[p.x / lanes][p.y * P::height + i] = in_row[i];
    }
    // Of a column: over the two patches of a warp, then over the warps that share its block.
    unsigned* of_columns = &shared.of_column[0][0][0];
    for (int k = static_cast<int>(threadIdx.x); k < groups * tile_extent; k += blockDim.x) of_columns[k] = 0;
    __syncthreads();
    auto& of_group = shared.of_column[p.y * P::height / extent];
#pragma unroll
    for (int j = 0; j < patch_width; ++j) {
      in_column[j] = max(in_column[j], __shfl_xor_sync(0xffffffffu, in_column[j], patches_across));
      if (threadIdx.x % 32 < patches_across) atomicMax(&of_group[j][p.x], in_column[j]);
    }
    __syncthreads();
#pragma unroll
    for (int j = 0; j < patch_width; ++j) of_column[j] = inverse_of(scale_field<format>(of_group[j][p.x]));

    for (int k = static_cast<int>(threadIdx.x); k < groups * tile_extent; k += blockDim.x) {
      const int group = k / tile_extent, entry = k % tile_extent;
      const int row = p.first_row + entry, column = p.first_column + entry;
      if (target.row_scales && row < p.R && p.first_column + group * extent < p.C)
        write_scale<scaling>(target.row_scales,
                             row_layout.at(row, (target.first + p.first_column) / extent + group),
                             scale_field<format>(shared.of_row[group][entry]));
      if (target.column_scales && column < p.C && p.first_row + group * extent < p.R)
        write_scale<scaling>(
            target.column_scales, column_layout.at(target.first + column, p.first_row / extent + group),
            scale_field<format>(shared.of_column[group][entry % patch_width][entry / patch_width]));
    }
  }
}

/// 8 codes of a row.
__device__ __forceinline__ void store(std::uint8_t* to, uint2 codes, int left) {
  if (left >= patch_width && reinterpret_cast<std::uintptr_t>(to) % sizeof codes == 0) {
    *reinterpret_cast<uint2*>(to) = codes;
    return;
  }
#pragma unroll
  for (int j = 0; j < patch_width; ++j)
    if (j < left) to[j] = static_cast<std::uint8_t>((j < 4 ? codes.x : codes.y) >> 8 * (j % 4));
}
/// 16 codes of a column.
__device__ __forceinline__ void store(std::uint8_t* to, uint4 codes, int left) {
  if (left >= 16 && reinterpret_cast<std::uintptr_t>(to) % sizeof codes == 0) {
    *reinterpret_cast<uint4*>(to) = codes;
    return;
  }
  const std::uint32_t words[4] = {codes.x, codes.y, codes.z, codes.w};
#pragma unroll
  for (int i = 0; i < 16; ++i)
    if (i < left) to[i] = static_cast<std::uint8_t>(words[i / 4] >> 8 * (i % 4));
}

/// Writes a tile's columns once all `threads` have put their patches to `turned`.
template <int threads>
__device__ __forceinline__ void store_columns(const Turned& turned, const Target& target, const Place& p) {
  __syncthreads();
  constexpr int vectors = tile_extent * tile_extent / 16, of_a_column = tile_extent / 16;
#pragma unroll 4
  for (int v = static_cast<int>(threadIdx.x); v < vectors; v += threads) {
    const int column = v / of_a_column, rows = v % of_a_column, x = column / patch_width;
    if (p.first_column + column >= p.C || p.first_row + 16 * rows >= p.R) continue;
    const uint4 held = *reinterpret_cast<const uint4*>(&turned[column][4 * (rows ^ x / 2)]);
    const uint4 codes = x % 2 ? uint4{held.z, held.w, held.x, held.y} : held;
    const int first = p.first_row + 16 * rows;
    store(target.columns + (target.first + p.first_column + column) * p.R + first, codes, p.R - first);
  }
}

template <Format format, Scaling scaling, class P>
__device__ __forceinline__ void write(const P& patch, const Target& target, const Place& p, Shared& shared) {
  float of_row[P::height], of_column[patch_width];
  find_scales<format, scaling>(patch, target, p, shared, of_row, of_column);
  if (target.rows) {
#pragma unroll
    for (int i = 0; i < P::height; ++i) {
      if (p.row + i >= p.R) break;
      const float s = of_row[i];
      const uint2 codes{
          encode4<format>(patch.at(i, 0) * s, patch.at(i, 1) * s, patch.at(i, 2) * s, patch.at(i, 3) * s),
          encode4<format>(patch.at(i, 4) * s, patch.at(i, 5) * s, patch.at(i, 6) * s, patch.at(i, 7) * s)};
      store(target.rows + std::int64_t{p.row + i} * target.width + target.first + p.column, codes,
            p.C - p.column);
    }
  }
  if (!target.columns) return;
#pragma unroll
  for (int j = 0; j < patch_width; ++j) {
    const float s = of_column[j];
    std::uint32_t words[P::height / 4];
#pragma unroll
    for (int i = 0; i < P::height; i += 4)
      words[i / 4] = encode4<format>(patch.at(i, j) * s, patch.at(i + 1, j) * s, patch.at(i + 2, j) * s,
                                     patch.at(i + 3, j) * s);
    std::uint32_t* to = &shared.turned[p.x * patch_width + j][p.y * (P::height / 4) ^ 2 * p.x];
    if constexpr (P::height == 8)
      *reinterpret_cast<uint2*>(to) = {words[0], words[1]};
    else
      *to = words[0];
  }
  store_columns<patches_across * tile_extent / P::height>(shared.turned, target, p);
}

/// Blocks go from the last tile to the first: whoever found the amax has left the last entries in the cache.
template <class Source, Scaling scaling>
__global__ void __launch_bounds__(threads_of<Source>, 1024 / threads_of<Source>)
    quantise_kernel(const __grid_constant__ Source source,
                    const __grid_constant__ Targets<Source::outputs> targets, int R, int C, Tiles tiles) {
  __shared__ Shared shared;
  const Place p = tiles.place<Source>(gridDim.x - 1 - blockIdx.x, R, C);
  PatchOf<Source> patches[Source::outputs];
  source.load(p.row, p.column, patches);
#pragma unroll
  for (int k = 0; k < Source::outputs; ++k) {
    if (k > 0) __syncthreads();  // the shared memory is still being read
    if (targets.of[k].format == Format::e4m3)
      write<Format::e4m3, scaling>(patches[k], targets.of[k], p, shared);
    else
      write<Format::e5m2, scaling>(patches[k], targets.of[k], p, shared);
  }
}

/// A gradient's source takes more registers than two blocks have, if it may; others are left alone (0).
template <class Source>
__global__ void __launch_bounds__(threads_of<Source>, Source::outputs == 1 ? 0 : 2)
    amax_kernel(const __grid_constant__ Source source,
                const __grid_constant__ Targets<Source::outputs> targets, int R, int C, Tiles tiles) {
  __shared__ unsigned of_block[Source::outputs];
  unsigned most[Source::outputs] = {};
  if (threadIdx.x < Source::outputs) of_block[threadIdx.x] = 0;
  for (unsigned tile = blockIdx.x; tile < tiles.count(); tile += gridDim.x) {
    const Place p = tiles.place<Source>(tile, R, C);
    PatchOf<Source> patches[Source::outputs];
    source.load(p.row, p.column, patches);
#pragma unroll
    for (int k = 0; k < Source::outputs; ++k)
#pragma unroll
      for (int i = 0; i < Source::height; ++i)
#pragma unroll
        for (int j = 0; j < patch_width; ++j) most[k] = max(most[k], magnitude_bits(patches[k].at(i, j)));
  }
  __syncthreads();
#pragma unroll
  for (int k = 0; k < Source::outputs; ++k) {
    const unsigned of_warp = __reduce_max_sync(0xffffffffu, most[k]);
    if (threadIdx.x % 32 == 0) atomicMax(&of_block[k], of_warp);
  }
  __syncthreads();
  if (threadIdx.x < 32)
#pragma unroll
    for (int k = 0; k < Source::outputs; ++k) raise(targets.of[k].amax, of_block[k]);
}

/// At least one: a matrix without entries has a scale.
inline Tiles tiles_of(const Job& job) {
  if (std::max(job.R, job.C) > std::numeric_limits<int>::max() - tile_extent)
    throw UserError(ExitCode::usage, "quantise: no kernel for " + std::to_string(job.R) + " x " +
                                         std::to_string(job.C) +
                                         " entries; give fewer than 2^31 - 128 each way");
  const auto along = [](std::int64_t extent) {
    return static_cast<unsigned>(std::max<std::int64_t>((extent + tile_extent - 1) / tile_extent, 1));
  };
  return {along(job.C), along(job.R)};
}

template <class Source>
Targets<Source::outputs> targets_of(const Job& job) {
  if (job.count != Source::outputs)
    throw UserError(ExitCode::bug, "quantise: " + std::to_string(job.count) + " targets for a source of " +
                                       std::to_string(Source::outputs));
  Targets<Source::outputs> all;
  std::copy_n(job.targets, job.count, all.of);
  return all;
}

template <class Source>
void amax_of(const Source& source, const Job& job) {
  // Two blocks of 512 threads, which have all their loads under way, on each of an H200's 132
  // multiprocessors; twice as many are there to even out.
  constexpr unsigned most_blocks = 528;
  const Tiles tiles = tiles_of(job);
  amax_kernel<Source><<<std::min(tiles.count(), most_blocks), threads_of<Source>, 0, job.stream>>>(
      source, targets_of<Source>(job), static_cast<int>(job.R), static_cast<int>(job.C), tiles);
  ASSAY_CUDA_CHECK_LAUNCH();
}

template <Scaling scaling, class Source>
void quantise_of(const Source& source, const Job& job) {
  const Tiles tiles = tiles_of(job);
  quantise_kernel<Source, scaling><<<tiles.count(), threads_of<Source>, 0, job.stream>>>(
      source, targets_of<Source>(job), static_cast<int>(job.R), static_cast<int>(job.C), tiles);
  ASSAY_CUDA_CHECK_LAUNCH();
}

/// Calls `call` with the scaling as a constant.
template <class Call>
void with_scaling(Scaling scaling, const Call& call) {
  switch (scaling) {
    case Scaling::tensor:
      return call(std::integral_constant<Scaling, Scaling::tensor>{});
    case Scaling::block_1x128:
      return call(std::integral_constant<Scaling, Scaling::block_1x128>{});
    case Scaling::block_128x128:
      return call(std::integral_constant<Scaling, Scaling::block_128x128>{});
    case Scaling::mx_1x32:
      return call(std::integral_constant<Scaling, Scaling::mx_1x32>{});
    case Scaling::row:
      break;
  }
  throw UserError(
      ExitCode::bug,
      "quantise: no kernel for one scale a row, which no recipe has; use the CPU or another scaling");
}

}  // namespace assay::impl::quantise::cuda
