#include "impl/params/layouts/layout_groups.hpp"

#include <string>

#include "spec/error.hpp"

namespace assay::impl {

LayoutGroups::LayoutGroups(Communicator& all, const spec::RankGroups& groups) : all_(all), groups_(groups) {
  require(groups.all.size == all.size(), "mesh_c2", [&] {
    return "a layout of " + std::to_string(groups.all.size) + " ranks, but there are " +
           std::to_string(all.size());
  });
  // Made here, in one order on every rank.
  for (const spec::RankGroup& each :
       {groups.batch, groups.tokens, groups.tensor, groups.holders, groups.experts})
    group(each);
  for (const spec::SetRanks& set : groups.sets)
    sets_.push_back({set.layout, group(set.state), group(set.replicas)});
}

LayoutGroups::LayoutGroups(Communicator& all, const spec::Layout& layout)
    : LayoutGroups(all, spec::groups_of(layout, all.rank())) {}

const spec::Layout& LayoutGroups::reduced() const {
  for (const Set& set : sets_)
    if (set.layout.ranks > 1) return set.layout;
  return layout();
}

/// All ranks themselves where the group is all of them, a lone rank where it is one.
Communicator& LayoutGroups::group(const spec::RankGroup& ranks) {
  if (ranks.size == all_.size()) return all_;
  std::unique_ptr<Communicator>& found = made_[ranks.ranks()];
  if (!found) found = ranks.size == 1 ? make_self_communicator() : all_.group(ranks.ranks());
  return *found;
}

}  // namespace assay::impl
