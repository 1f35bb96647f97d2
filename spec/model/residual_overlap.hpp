#pragma once
// How large and how alike the hidden states of an untrained model are, in expectation over its initial
// weights. Derivation: spec/model/initial_loss.md.
#include <vector>

#include "spec/model/model_spec.hpp"
#include "spec/model/token_statistics.hpp"

namespace assay::spec {

/// Overlap of two positions: (1/D) sum_d x_d x'_d, after the last block, before the final norm.
struct ResidualOverlap {
  struct Positions {
    double share;        ///< of all positions of a sequence
    double mean_square;  ///< overlap of a position with itself
  };
  std::vector<Positions> positions;  ///< positions of a sequence, grouped by floor(log2(t + 1))
  // Of the normalised states, in [0, 1]:
  double self = 1;       ///< mean of mean_square / (mean_square + eps): 1 but for eps
  double same = 1;       ///< two positions with the same input id
  double different = 0;  ///< two positions with different input ids
};

/// Initial weights as in spec/ops/init/init.md. Errors: SpecError model_c1.. as `check`.
ResidualOverlap residual_overlap(const ModelSpec& model, const TokenStatistics& batch);

}  // namespace assay::spec
