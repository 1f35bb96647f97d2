#include "spec/parallel/parameter_sets.hpp"

#include <algorithm>
#include <utility>

#include "spec/parallel/expert_ranks.hpp"

namespace assay::spec {

namespace {

SetRanks set_ranks(const Layout& layout, const RankGroup& ranks) {
  return {layout, ranks, ranks.neighbours(layout.shard_ranks), ranks.alike(layout.shard_ranks)};
}

RankGroups groups_of(const Place& place, std::int64_t holders, bool experts) {
  const Mesh mesh = mesh_of(place.layout, place.tensor_ranks);
  check_trainable(mesh);
  const std::int64_t e = place.expert_ranks;
  const RankGroup all = group_of(mesh, place.rank, Axis::pp, Axis::tp),
                  tokens = group_of(mesh, place.rank, Axis::dp_replicate, Axis::cp),
                  tensor = group_of(mesh, place.rank, Axis::tp);
  RankGroups out{.all = all,
                 .batch = group_of(mesh, place.rank, Axis::dp_replicate, Axis::dp_shard),
                 .tokens = tokens,
                 .tensor = tensor,
                 .holders = tensor.neighbours(holders),
                 .experts = all.neighbours(e),
                 .sets = {set_ranks(place.layout, tokens)}};
  if (experts && (e > 1 || place.tensor_ranks > 1))
    out.sets.push_back(set_ranks(expert_layout(place.layout, e, place.tensor_ranks), all.alike(e)));
  return out;
}

/// Of `all`, which has the model's parameters in their order, those that `wanted` picks; their names move.
template <class Wanted>
ParameterSet picked(Inventory& all, const SetRanks& ranks, const Wanted& wanted) {
  ParameterSet set{ranks, {}, {}};
  std::size_t number = 0;
  Inventory own = selection(std::move(all), [&](const Parameter& parameter) {
    const bool picks = wanted(parameter);
    if (picks) set.placements.push_back({.number = number, .moved = parameter.offset});
    ++number;
    return picks;
  });
  for (std::size_t i = 0; i < own.parameters.size(); ++i) set.placements[i].moved -= own.parameters[i].offset;
  set.partition = partition(std::move(own), ranks.layout.shard_ranks);
  return set;
}

}  // namespace

RankGroups groups_of(const ModelSpec& model, const Place& place) {
  check_expert_ranks(model, place.expert_ranks, place.layout, place.tensor_ranks,
                     /*micro=*/place.tensor_ranks);
  return groups_of(place, kv_holders(model, place.tensor_ranks), model.experts.has_value());
}

RankGroups groups_of(const Layout& layout, std::int64_t rank) {
  return groups_of(Place{.layout = layout, .rank = rank}, /*holders=*/1, /*experts=*/false);
}

Share share(const ModelSpec& model, const Place& place) {
  const std::int64_t t = place.tensor_ranks;
  check_tensor_ranks(model, t, /*tokens=*/0);
  Share out{.model = tensor_model(model, t), .groups = groups_of(model, place), .sets = {}};
  const RankGroups& groups = out.groups;
  const bool apart = groups.sets.size() > 1;
  Inventory whole = inventory(model), split = t > 1 ? inventory(out.model) : Inventory{};
  out.sets.push_back(picked(t > 1 ? split : whole, groups.sets[0], [&](const Parameter& parameter) {
    return !apart || routed_expert(parameter) < 0;
  }));
  ParameterSet& dense = out.sets.front();
  for (std::size_t i = 0; i < dense.placements.size() && t > 1; ++i) {
    const std::size_t number = dense.placements[i].number;
    dense.placements[i] = placement(whole.parameters[number], dense.partition.inventory.parameters[i],
                                    {t, groups.tensor.number});
    dense.placements[i].number = number;
  }
  if (!apart) return out;
  const std::int64_t each = model.experts->count / groups.experts.size;
  out.sets.push_back(picked(whole, groups.sets[1], [&](const Parameter& parameter) {
    const std::int64_t expert = routed_expert(parameter);
    return expert >= 0 && expert / each == groups.experts.number;
  }));
  return out;
}

SharedEntries shared_entries(const ParameterSet& set, std::int64_t number, std::int64_t tensor_ranks) {
  const auto blocks = static_cast<std::size_t>(set.partition.inventory.blocks);
  SharedEntries out{std::vector<std::int64_t>(blocks), std::vector<std::int64_t>(blocks)};
  for (std::size_t i = 0; i < set.placements.size(); ++i) {
    if (!set.placements[i].shared()) continue;
    const Parameter& own = set.partition.inventory.parameters[i];
    const Inventory::Range held = set.partition.owned(own.block, number);
    const std::int64_t begin = std::max(held.begin, own.offset),
                       end = std::min(held.end, own.offset + own.size);
    auto& of_block = set.placements[i].holders == tensor_ranks ? out.of_all : out.of_some;
    of_block[static_cast<std::size_t>(own.block)] += std::max<std::int64_t>(0, end - begin);
  }
  return out;
}

}  // namespace assay::spec
