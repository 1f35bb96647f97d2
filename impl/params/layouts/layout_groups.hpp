#pragma once
// The groups of ranks in which a run communicates, one for each axis of the mesh (spec/parallel/mesh.md).
#include <memory>

#include "impl/comm/communicator.hpp"
#include "spec/parallel/data_layout.hpp"
#include "spec/parallel/expert_ranks.hpp"
#include "spec/parallel/placement.hpp"

namespace assay::impl {

class LayoutGroups {
 public:
  /// Every rank of `all` calls. `layout`: of the data ranks. `tensor_ranks`: of which each of them is made;
  /// neighbours in groups of `holders` share parameters of which there are fewer than tensor ranks
  /// (spec/parallel/placement.md). `expert_ranks` neighbouring ranks hold the experts of a layer between them
  /// (spec/parallel/expert_ranks.md); `sparse`: whether the model has experts. Errors: SpecError mesh_c2 when
  /// the layout is of another number of ranks; those of the engine.
  LayoutGroups(Communicator& all, const spec::Layout& layout, std::int64_t tensor_ranks = 1,
               std::int64_t holders = 1, std::int64_t expert_ranks = 1, bool sparse = false);

  const spec::Layout& layout() const { return layout_; }
  Communicator& all() { return all_; }
  /// Ranks that read different sequences and hold the same part of every matrix.
  Communicator& data() { return *data_; }
  /// Of the data ranks, those that hold one copy of the state between them.
  Communicator& shard() { return *shard_; }
  /// Of the data ranks, those that hold the same shard of it.
  Communicator& replicas() { return *replicas_; }
  /// Ranks that read the same sequences and hold different parts of every matrix.
  Communicator& tensor() { return *tensor_; }
  /// Of the tensor ranks, those that hold the same key and value heads.
  Communicator& holders() { return *holders_; }
  spec::TensorRank tensor_rank() const { return {tensor_->size(), tensor_->rank()}; }
  spec::ExpertRank expert_rank() const { return {expert_->size(), expert_->rank()}; }
  /// Neighbouring ranks that hold all experts between them; a lone rank where every rank does.
  Communicator& expert() { return *expert_; }
  /// The groups of this rank's experts, over the ranks that hold the same ones; null where these are laid out
  /// with everything else.
  LayoutGroups* experts() { return experts_.get(); }
  /// The layout whose reductions a step runs: of one data rank with several tensor ranks, that of the
  /// experts, which these have copies of.
  const spec::Layout& reduced() const { return layout_.ranks == 1 && experts_ ? experts_->layout_ : layout_; }

 private:
  Communicator& all_;
  const spec::Layout layout_;
  std::vector<std::unique_ptr<Communicator>> owned_;
  Communicator *data_ = nullptr, *shard_ = nullptr, *replicas_ = nullptr, *tensor_ = nullptr,
               *holders_ = nullptr, *expert_ = nullptr;
  std::unique_ptr<LayoutGroups> experts_;  ///< in groups of the above
};

}  // namespace assay::impl
