#pragma once
// The groups of ranks in which a layout communicates (spec/parallel/data_layout.md).
#include <memory>

#include "impl/comm/communicator.hpp"
#include "spec/parallel/data_layout.hpp"

namespace assay::impl {

class LayoutGroups {
 public:
  /// Every rank of `world` calls. Errors: SpecError mesh_c2 when the layout is of another number of ranks;
  /// those of the engine.
  LayoutGroups(Communicator& world, const spec::Layout& layout);

  const spec::Layout& layout() const { return layout_; }
  Communicator& world() { return world_; }
  /// Ranks that hold one copy of the state between them.
  Communicator& shard() { return *shard_; }
  /// Ranks that hold the same shard of it.
  Communicator& replicas() { return *replicas_; }
  /// Whether rank 0 of the world is in this rank's shard group, as the rank 0 of it.
  bool with_rank_0() const { return with_rank_0_; }

 private:
  Communicator& world_;
  const spec::Layout layout_;
  bool with_rank_0_ = true;
  std::unique_ptr<Communicator> owned_shard_, owned_replicas_;
  Communicator* shard_ = nullptr;
  Communicator* replicas_ = nullptr;
};

}  // namespace assay::impl
