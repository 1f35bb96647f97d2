#pragma once
// What one rank of a tensor-parallel group holds of every parameter. One table that buffers, initial values,
// gradient sums, the norm, checkpoints and the plan read. Rules and example: spec/parallel/placement.md.
#include <cstdint>

#include "spec/model/inventory.hpp"

namespace assay::spec {

/// A rank of a tensor-parallel group of `ranks`.
struct TensorRank {
  std::int64_t ranks = 1;
  std::int64_t rank = 0;
  bool operator==(const TensorRank&) const = default;
};

/// Refuses a degree that the model's extents do not allow (spec/config/division.hpp names those that they
/// do). `tokens`: of a micro-batch, whose residual stream the ranks hold in equal parts. Errors: SpecError
/// placement_c1 (degree below 1), placement_c2 (heads), placement_c3 (KV heads), placement_c4 (inner width of
/// the MLP), placement_c5 (vocabulary), placement_c6 (tokens), placement_c7 (biases behind a row-parallel
/// GEMM), placement_c8 (a norm of queries and keys across heads), placement_c20 (latent attention).
void check_tensor_ranks(const ModelSpec& model, std::int64_t ranks, std::int64_t tokens);

/// The model that one of `ranks` tensor ranks computes: H/t heads, K/t KV heads but at least one, an MLP of
/// F/t, V/t entries of the vocabulary, rounded up. The same for each rank; with one rank the model itself.
ModelSpec tensor_model(const ModelSpec& model, std::int64_t ranks);

/// Where a parameter of tensor_model lies in the same parameter of the whole model.
struct Placement {
  std::size_t number = 0;    ///< of the whole one among the model's parameters
  std::int64_t moved = 0;    ///< entries by which a rank that lacks others' experts holds it further in front
  int dimension = -1;        ///< that is split over the tensor ranks; -1: every rank holds all of it
  std::int64_t begin = 0;    ///< first row (dimension 0) or column (1) of the whole that this rank holds
  std::int64_t count = 0;    ///< rows or columns of the whole; behind them this rank's parameter is zeros
  std::int64_t holders = 1;  ///< neighbouring tensor ranks that hold the same entries
  std::int64_t holder = 0;   ///< which of them this rank is
  std::int64_t group = 0;    ///< number of that group of holders among the tensor ranks
  bool shared() const { return holders > 1; }  ///< its gradient is summed over the holders
};

/// Of one parameter: `own` is that of the rank's model. Domain: both of the same model.
Placement placement(const Parameter& whole, const Parameter& own, const TensorRank& rank);

/// Neighbouring tensor ranks that hold the same key and value heads.
std::int64_t kv_holders(const ModelSpec& model, std::int64_t ranks);

/// First entry of the vocabulary whose row `rank` holds, and how many it holds; the last rank may have fewer.
struct OwnVocabulary {
  std::int64_t first = 0, count = 0;
};
OwnVocabulary own_vocabulary(std::int64_t vocab, const TensorRank& rank);

}  // namespace assay::spec
