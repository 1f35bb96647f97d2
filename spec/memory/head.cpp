#include "spec/memory/head.hpp"

#include <algorithm>

namespace assay::spec::memory {

std::int64_t chunk_tokens(std::int64_t N, std::int64_t V, std::int64_t limit) {
  const std::int64_t most = std::max<std::int64_t>(1, limit / V), chunks = (N + most - 1) / most;
  if (chunks == 1) return N;
  constexpr std::int64_t tile = 128;  // rows of a GEMM's tile
  const std::int64_t even = (N + chunks - 1) / chunks;
  return most < tile ? most : std::min(most / tile * tile, (even + tile - 1) / tile * tile);
}

std::int64_t padded_vocabulary(std::int64_t V, std::int64_t element_bytes) {
  constexpr std::int64_t access = 16, tile = 128;
  return V * element_bytes % access == 0 ? V : (V + tile - 1) / tile * tile;
}

}  // namespace assay::spec::memory
