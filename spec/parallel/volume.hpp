#pragma once
// Bytes that an optimizer step hands to collectives, by layout. Formulas and example:
// spec/parallel/volume.md.
#include <array>
#include <cstdint>
#include <vector>

#include "spec/count.hpp"
#include "spec/model/recompute.hpp"
#include "spec/ops/linear/linear_precision.hpp"
#include "spec/parallel/collective.hpp"
#include "spec/parallel/parameter_sets.hpp"

namespace assay::spec {

/// Bytes of all collectives of a kind, counted as its row of collective_table says. The same on every rank of
/// the group; of an all-to-all a mean over its ranks. [B]
struct Volume {
  std::array<Count, collectives> bytes{};
  Count& operator[](Collective collective) { return bytes[static_cast<std::size_t>(collective)]; }
  const Count& operator[](Collective collective) const { return bytes[static_cast<std::size_t>(collective)]; }
  bool operator==(const Volume&) const = default;
};
Volume operator+(const Volume& a, const Volume& b);

/// By the group of ranks that talks.
struct StepVolume {
  Volume shard;         ///< ranks that hold one copy of the state between them
  Volume replica;       ///< ranks that hold the same shard
  Volume world;         ///< ranks that hold different tokens: the loss
  Volume tensor;        ///< the tensor ranks of a data rank (tensor_volume)
  Volume experts;       ///< ranks that hold the same experts, where these are a set of their own
  Volume expert_group;  ///< neighbouring ranks that hold all experts between them (expert_volume)
  bool operator==(const StepVolume&) const = default;
};

/// What determines the volume. Bytes per element: of a gradient on the wire, and of a working weight. Weights
/// of 2 bytes have the gains of norms in fp32 beside them. `linear`: sharded layouts gather the linears of
/// some blocks as FP8 codes.
struct StepTraffic {
  std::int64_t accumulation = 1;
  std::int64_t gradient_bytes = 4;
  std::int64_t weight_bytes = 2;
  bool tied_embeddings = false;
  LinearPrecision linear = {};
  std::int64_t sources = 0;  ///< of a mixture, whose losses are summed one by one
  bool balance_of_batch =
      false;  ///< the balance loss is of the batch so far: loads are summed in each forward
};

/// How often a step gathers each block where weights are sharded. Errors: SpecError volume_c1 (fewer than
/// three blocks, or accumulation below 1).
std::vector<std::int64_t> block_gathers(std::int64_t blocks, std::int64_t accumulation, bool tied_embeddings);

/// Numbers in fp64 that all data ranks sum once a step: cross-entropy and z-loss, and for each router its two
/// losses, its entropy, what was dropped and the load of each expert.
std::int64_t reduced_losses(const Inventory& inventory);
inline constexpr std::int64_t losses_of_tokens = 2;  ///< of them, cross-entropy and z-loss
/// Loads of experts in fp64 that they sum in each micro-batch where the balance loss is of the batch so far.
std::int64_t shared_loads(const Inventory& inventory);

/// Of one step, between the ranks of each set and those that hold different tokens. Errors: SpecError
/// volume_c1.
StepVolume step_volume(const Share& share, const StepTraffic& traffic);

/// What determines the volume of tensor parallelism. Bytes per element: of an activation, of a statistic of
/// the loss, of a gradient that the optimizer reads.
struct TensorTraffic {
  std::int64_t tokens = 1;  ///< N of a micro-batch
  std::int64_t accumulation = 1;
  Recompute recompute = Recompute::none;
  std::int64_t activation_bytes = 4, statistic_bytes = 4, gradient_bytes = 4;
  bool balance_of_batch = false;  ///< as StepTraffic's
};

/// Of one step, over the tensor ranks, those that share key and value heads included. Nothing with one.
Volume tensor_volume(const Share& share, const TensorTraffic& traffic);

/// What determines the volume of expert parallelism. Bytes per element: of an activation, and of the weight
/// of a choice.
struct ExpertTraffic {
  Count
      visits{};  ///< pairs of a token and a rank that holds one of its experts, over the step's sparse layers
  std::int64_t accumulation = 1;
  Recompute recompute = Recompute::none;
  std::int64_t activation_bytes = 4, statistic_bytes = 4;
  LinearPrecision linear = {};  ///< with routed experts in FP8 the ranks agree on each scale
};

/// `visits` of a step at most, of `tokens` in each of its micro-batches: every token visits min(A, e) ranks.
Count most_visits(const ModelSpec& model, std::int64_t ranks, std::int64_t tokens, std::int64_t accumulation);

/// Of one step, over the `ranks` of an expert group. Nothing with one rank.
Volume expert_volume(const ModelSpec& model, std::int64_t ranks, const ExpertTraffic& traffic);

/// Bytes that every one of `ranks` sends, at least and in a ring: those of each row times its factor, with
/// even routing. [B] Source: Patarasuk and Yuan 2009, "Bandwidth optimal all-reduce algorithms", section 3.
double sent_bytes(const Volume& volume, std::int64_t ranks);

}  // namespace assay::spec
