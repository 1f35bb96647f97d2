#include "spec/plan/layouts_that_fit.hpp"

#include <algorithm>

namespace assay::spec::memory {

namespace {

/// From the fewest bytes that ranks move in a step to the most.
std::vector<Layout> layouts_of(std::int64_t ranks, std::int64_t ranks_per_host) {
  std::vector<Layout> layouts = {layout_of(DataParallel::replicate, ranks),
                                 layout_of(DataParallel::zero1, ranks)};
  if (ranks_per_host > 1)
    for (std::int64_t within = ranks_per_host; within < ranks; within += ranks_per_host)
      if (ranks % within == 0) layouts.push_back(layout_of(DataParallel::hybrid, ranks, within));
  layouts.push_back(layout_of(DataParallel::shard, ranks));
  return layouts;
}

}  // namespace

std::optional<Way> way_of(const Setting& setting, const Count& capacity) {
  const Fit fits = fit(setting, capacity);
  if (fits.asked)
    return Way{.micro = setting.micro, .recompute = setting.recompute, .peak = plan(setting).peak};
  if (fits.smaller_micro) return fits.smaller_micro;
  return fits.recompute ? fits.recompute : fits.both;
}

std::vector<LayoutWay> layouts_that_fit(const Setting& setting, std::int64_t ranks_per_host,
                                        const Count& capacity) {
  std::vector<LayoutWay> found;
  if (setting.layout.ranks == 1) return found;
  bool hybrid = false;
  for (const Layout& layout : layouts_of(setting.layout.ranks, ranks_per_host)) {
    const std::int64_t among =
        (layout.shards_state() ? layout.shard_ranks : layout.ranks) * setting.tensor_ranks;
    if (among % setting.expert_ranks != 0) continue;  // placement_c13
    if (layout == setting.layout || (hybrid && layout.data == DataParallel::hybrid)) continue;
    Setting other = setting;
    other.layout = layout;
    const auto way = way_of(other, capacity);
    if (!way) continue;
    hybrid = hybrid || layout.data == DataParallel::hybrid;
    found.push_back({layout, *way});
  }
  std::stable_partition(found.begin(), found.end(), [&](const LayoutWay& each) {
    return each.way.micro == setting.micro && each.way.recompute == setting.recompute;
  });
  return found;
}

}  // namespace assay::spec::memory
