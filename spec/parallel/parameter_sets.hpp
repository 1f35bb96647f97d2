#pragma once
// What one rank holds of a model: sets of parameters, each with its own groups of ranks. Everything that
// walks parameters walks these. Rules and example: spec/parallel/parameter_sets.md.
#include <cstdint>
#include <vector>

#include "spec/parallel/data_layout.hpp"
#include "spec/parallel/mesh.hpp"
#include "spec/parallel/partition.hpp"
#include "spec/parallel/placement.hpp"

namespace assay::spec {

/// How the ranks of a run divide a model, and which of them one is.
struct Place {
  Layout layout = {};
  std::int64_t tensor_ranks = 1;  ///< of which each rank of the layout is made
  std::int64_t expert_ranks = 1;  ///< neighbouring ranks that hold the experts of a layer between them
  std::int64_t rank = 0;          ///< of all
};

/// The ranks that hold the same parameters as one does.
struct SetRanks {
  Layout layout;
  RankGroup all;
  RankGroup state;     ///< hold one copy of the optimizer's state, and of sharded weights, between them
  RankGroup replicas;  ///< hold the same shard: gradients are summed over `state` and over these
  /// Hold the same bits of the working weights.
  const RankGroup& copies() const { return layout.shards_weights() ? replicas : all; }
};

/// The groups of ranks in which a rank communicates.
struct RankGroups {
  RankGroup all;
  RankGroup batch;  ///< read different sequences, and hold the same part of every matrix
  RankGroup
      tokens;  ///< the same and those that hold other tokens of the same sequences: losses are summed here
  RankGroup tensor;   ///< read the same sequences, and hold different parts of every matrix
  RankGroup holders;  ///< of `tensor`, those that hold the same key and value heads
  RankGroup experts;  ///< hold all experts between them; a lone rank where every rank does
  /// Where several ranks hold the experts between them, or tensor ranks split everything else, two: of all
  /// but the routed experts, then of this rank's own. Else one.
  std::vector<SetRanks> sets;
  /// Whether this rank stands for those that read the same tokens: what is counted of tokens, and summed over
  /// all ranks, is theirs once.
  bool counts_tokens() const { return tensor.number == 0; }
};

/// Parameters that are laid out together.
struct ParameterSet : SetRanks {
  Partition partition;                ///< of the rank's inventory, over `state`
  std::vector<Placement> placements;  ///< of each parameter of it
};

struct Share {
  ModelSpec model;  ///< that the rank computes
  RankGroups groups;
  std::vector<ParameterSet> sets;  ///< as groups.sets
};

/// Errors: as check_tensor_ranks without tokens, check_expert_ranks, coordinates_of, inventory.
Share share(const ModelSpec& model, const Place& place);
/// Of these the groups alone. Errors: as check_expert_ranks, coordinates_of.
RankGroups groups_of(const ModelSpec& model, const Place& place);
/// Of a model without experts, whatever it is, over the ranks of a layout.
RankGroups groups_of(const Layout& layout, std::int64_t rank);

/// Entries of gradients that rank `number` of a set's `state` owns and other tensor ranks hold too, by block:
/// those that every tensor rank holds, and those that some hold.
struct SharedEntries {
  std::vector<std::int64_t> of_all, of_some;
};
SharedEntries shared_entries(const ParameterSet& set, std::int64_t number, std::int64_t tensor_ranks);

}  // namespace assay::spec
