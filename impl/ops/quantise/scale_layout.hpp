#pragma once
// Where the scales of a matrix stand in memory: what GEMMs read, CPU loops and kernels write.
#include <cstdint>

#include "spec/ops/quantise/quantise.hpp"

namespace assay::impl::quantise {

using spec::quantise::Scaling;

/// Offsets of a matrix of scales [rows, columns], the summed axis along its columns. cuBLASLt reads scales of
/// 1 x 128 with the rows contiguous, those of 128 x 128 with the columns contiguous, each padded to 4; those
/// of 1 x 32 in tiles of 128 rows by 4 columns, 512 bytes, tiles of the same rows contiguous.
struct ScaleLayout {
  Scaling scaling = Scaling::tensor;
  std::int64_t rows = 1, columns = 1;

  static constexpr std::int64_t padded(std::int64_t extent, std::int64_t unit) {
    return (extent + unit - 1) / unit * unit;
  }

  /// Offset of the scale of block (row, column).
  constexpr std::int64_t at(std::int64_t row, std::int64_t column) const {
    switch (scaling) {
      case Scaling::tensor:
        return 0;
      case Scaling::row:
        return row;
      case Scaling::block_1x128:
        return column * padded(rows, 4) + row;
      case Scaling::block_128x128:
        return row * padded(columns, 4) + column;
      case Scaling::mx_1x32:
        break;
    }
    const std::int64_t tile = row / 128 * (padded(columns, 4) / 4) + column / 4;
    return tile * 512 + row % 32 * 16 + row % 128 / 32 * 4 + column % 4;
  }

  /// Number of scales, padding included.
  constexpr std::int64_t size() const {
    switch (scaling) {
      case Scaling::tensor:
        return 1;
      case Scaling::row:
        return rows;
      case Scaling::block_1x128:
        return columns * padded(rows, 4);
      case Scaling::block_128x128:
        return rows * padded(columns, 4);
      case Scaling::mx_1x32:
        break;
    }
    return padded(rows, 128) * padded(columns, 4);
  }
};

}  // namespace assay::impl::quantise
