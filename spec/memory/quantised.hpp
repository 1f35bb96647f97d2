#pragma once
// Bytes of a matrix in FP8 on a device: codes of one byte, and scales in the order in which GEMMs read them
// (impl/ops/quantise/quantise.hpp).
#include <cstdint>
#include <vector>

#include "spec/ops/quantise/quantise.hpp"

namespace assay::spec::memory {

struct Scales {
  std::vector<std::int64_t> shape;
  std::int64_t element_bytes = 4;
};

inline std::int64_t padded_to(std::int64_t extent, std::int64_t multiple) {
  return (extent + multiple - 1) / multiple * multiple;
}

/// Of a matrix [rows, columns] whose GEMM sums over columns.
inline Scales scales(quantise::Scaling scaling, std::int64_t rows, std::int64_t columns) {
  const quantise::Blocks blocks = quantise::blocks(scaling, rows, columns);
  switch (scaling) {
    case quantise::Scaling::tensor:
      return {.shape = {1}};
    case quantise::Scaling::row:
      return {.shape = {rows}};
    case quantise::Scaling::block_1x128:
      return {.shape = {blocks.columns, padded_to(rows, 4)}};
    case quantise::Scaling::block_128x128:
      return {.shape = {blocks.rows, padded_to(blocks.columns, 4)}};
    case quantise::Scaling::mx_1x32:
      return {.shape = {padded_to(rows, 128), padded_to(blocks.columns, 4)}, .element_bytes = 1};
  }
  return {};
}

}  // namespace assay::spec::memory
