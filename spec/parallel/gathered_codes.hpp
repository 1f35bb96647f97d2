#pragma once
// Decoder blocks of a sharded layout whose linears are gathered as FP8 codes, one byte a weight, and what
// every rank holds beside the codes. Definition: spec/parallel/volume.md.
#include <cstdint>
#include <vector>

#include "spec/model/inventory.hpp"
#include "spec/ops/linear/linear_precision.hpp"

namespace assay::spec {

/// Blocks in FP8 with one scale a tensor, whose matrices all are linears: with one scale a part has the codes
/// that it has in the whole, once the ranks agree on the amax. A block with experts is gathered in the
/// compute type.
struct GatheredCodes {
  std::vector<std::int64_t> blocks;  ///< ascending, from 1
  /// Gains and biases of these blocks, in the compute type, with places in a buffer of their own.
  Inventory vectors;
  /// Linears of all of them: each has an amax and a scale, fp32.
  std::int64_t linears = 0;

  bool of(std::int64_t block) const;
};

/// `all`: of a model that trains. `gains_apart`: gains of norms are not among the vectors, since every rank
/// holds them in fp32 (spec::norm_gains).
GatheredCodes gathered_codes(const Inventory& all, const LinearPrecision& linear, bool gains_apart);

}  // namespace assay::spec
