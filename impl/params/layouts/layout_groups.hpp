#pragma once
// The groups of ranks in which a run communicates (spec/parallel/parameter_sets.md).
#include <map>
#include <memory>
#include <vector>

#include "impl/comm/communicator.hpp"
#include "spec/parallel/parameter_sets.hpp"

namespace assay::impl {

class LayoutGroups {
 public:
  /// Every rank of `all` calls. `groups`: of this rank. Errors: SpecError mesh_c2 when they are of another
  /// number of ranks; those of the engine.
  LayoutGroups(Communicator& all, const spec::RankGroups& groups);
  /// Of data ranks alone.
  LayoutGroups(Communicator& all, const spec::Layout& layout);

  /// Of a set of parameters.
  struct Set {
    spec::Layout layout;
    Communicator& state;     ///< ranks that hold one copy of the state between them
    Communicator& replicas;  ///< ranks that hold the same shard of it
  };
  const std::vector<Set>& sets() const { return sets_; }
  const spec::Layout& layout() const { return sets_.front().layout; }
  Communicator& all() { return all_; }
  /// Ranks that read different sequences and hold the same part of every matrix.
  Communicator& batch() { return group(groups_.batch); }
  /// The same, and those that hold other tokens of the same sequences.
  Communicator& tokens() { return group(groups_.tokens); }
  /// Ranks that read the same sequences and hold different parts of every matrix.
  Communicator& tensor() { return group(groups_.tensor); }
  /// Of the tensor ranks, those that hold the same key and value heads.
  Communicator& holders() { return group(groups_.holders); }
  /// Neighbouring ranks that hold all experts between them; a lone rank where every rank does.
  Communicator& expert() { return group(groups_.experts); }
  const spec::RankGroups& ranks() const { return groups_; }
  /// The layout whose reductions a step runs: that of the first set that is not on this rank alone.
  const spec::Layout& reduced() const;

 private:
  Communicator& group(const spec::RankGroup& ranks);

  Communicator& all_;
  const spec::RankGroups groups_;
  /// Groups of the same ranks, which are the same on every rank, are one communicator.
  std::map<std::vector<std::int64_t>, std::unique_ptr<Communicator>> made_;
  std::vector<Set> sets_;
};

}  // namespace assay::impl
