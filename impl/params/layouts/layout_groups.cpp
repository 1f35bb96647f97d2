#include "impl/params/layouts/layout_groups.hpp"

namespace assay::impl {

namespace {
/// The group along an axis: the world itself where it is all of it, a lone rank where it is one.
Communicator* group_along(Communicator& world, const spec::Mesh& mesh, spec::Axis axis,
                          std::unique_ptr<Communicator>& owned) {
  const auto ranks = spec::group_of(mesh, world.rank(), axis);
  if (static_cast<int>(ranks.size()) == world.size()) return &world;
  owned = ranks.size() == 1 ? make_self_communicator() : world.group(ranks);
  return owned.get();
}
}  // namespace

LayoutGroups::LayoutGroups(Communicator& world, const spec::Layout& layout) : world_(world), layout_(layout) {
  const spec::Mesh mesh = spec::mesh_of(layout);
  spec::check(mesh, world.size());
  spec::check_trainable(mesh);
  shard_ = group_along(world, mesh, spec::Axis::dp_shard, owned_shard_);
  replicas_ = group_along(world, mesh, spec::Axis::dp_replicate, owned_replicas_);
  with_rank_0_ = spec::group_of(mesh, world.rank(), spec::Axis::dp_shard).front() == 0;
}

}  // namespace assay::impl
