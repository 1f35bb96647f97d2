#include "impl/params/layouts/layout_groups.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <vector>

namespace assay::impl {

namespace {

/// The ranks that differ from `rank` in `axes` alone, in their order.
std::vector<std::int64_t> group_along(const spec::Mesh& mesh, std::int64_t rank,
                                      const std::vector<spec::Axis>& axes) {
  std::vector<std::int64_t> ranks = {rank};
  for (const spec::Axis axis : axes) {
    std::vector<std::int64_t> wider;
    for (const std::int64_t each : ranks) {
      const auto along = spec::group_of(mesh, each, axis);
      wider.insert(wider.end(), along.begin(), along.end());
    }
    ranks = std::move(wider);
  }
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

}  // namespace

LayoutGroups::LayoutGroups(Communicator& all, const spec::Layout& layout, std::int64_t tensor_ranks,
                           std::int64_t holders, std::int64_t expert_ranks, bool sparse)
    : all_(all), layout_(layout) {
  using spec::Axis;
  const spec::Mesh mesh = spec::mesh_of(layout, tensor_ranks);
  spec::check(mesh, all.size());
  spec::check_trainable(mesh);
  // All ranks themselves where the group is all of them, a lone rank where it is one. Groups of the same
  // ranks, which are the same on every rank, are one communicator.
  std::map<std::vector<std::int64_t>, Communicator*> made;
  const auto group = [&](const std::vector<std::int64_t>& ranks) {
    if (static_cast<int>(ranks.size()) == all.size()) return &all;
    Communicator*& found = made[ranks];
    if (!found) {
      owned_.push_back(ranks.size() == 1 ? make_self_communicator() : all.group(ranks));
      found = owned_.back().get();
    }
    return found;
  };
  const std::vector<std::int64_t> shard = group_along(mesh, all.rank(), {Axis::dp_shard}),
                                  tensor = group_along(mesh, all.rank(), {Axis::tp});
  const std::vector<std::int64_t> data = group_along(mesh, all.rank(), {Axis::dp_replicate, Axis::dp_shard});
  data_ = group(data);
  shard_ = group(shard);
  replicas_ = group(group_along(mesh, all.rank(), {Axis::dp_replicate}));
  tensor_ = group(tensor);
  const auto first = tensor.begin() + tensor_->rank() / holders * holders;
  holders_ = group({first, first + holders});
  // Ranks of all data and tensor coordinates, each of which has tokens of its own for the experts.
  std::vector<std::int64_t> neighbours(static_cast<std::size_t>(expert_ranks));
  std::iota(neighbours.begin(), neighbours.end(), all.rank() / expert_ranks * expert_ranks);
  expert_ = group(neighbours);
  if (expert_ranks == 1 && !(sparse && tensor_ranks > 1)) return;  // spec::experts_apart
  std::vector<std::int64_t> alike;                                 // hold the same experts
  for (std::int64_t rank = expert_->rank(); rank < all.size(); rank += expert_ranks) alike.push_back(rank);
  experts_ =
      std::make_unique<LayoutGroups>(*group(alike), spec::expert_layout(layout, expert_ranks, tensor_ranks));
}

}  // namespace assay::impl
