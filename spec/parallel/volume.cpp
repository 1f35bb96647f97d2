#include "spec/parallel/volume.hpp"

#include <algorithm>
#include <string>

#include "spec/error.hpp"
#include "spec/ops/load_balancing/load_balancing.hpp"
#include "spec/parallel/gathered_codes.hpp"

namespace assay::spec {

namespace {
constexpr std::int64_t norms = 1, code_bytes = 1, count_bytes = 4, fp32_bytes = 4, fp64_bytes = 8;
}  // namespace

Volume operator+(const Volume& a, const Volume& b) {
  Volume sum = a;
  for (std::size_t i = 0; i < collectives; ++i) sum.bytes[i] += b.bytes[i];
  return sum;
}

std::vector<std::int64_t> block_gathers(std::int64_t blocks, std::int64_t accumulation,
                                        bool tied_embeddings) {
  // volume_c1
  require(blocks >= 3 && accumulation >= 1, "volume_c1", [&] {
    return "blocks=" + std::to_string(blocks) + ", accumulation=" + std::to_string(accumulation);
  });
  const std::int64_t layers = blocks - 2;
  std::vector<std::int64_t> gathers(static_cast<std::size_t>(blocks), tied_embeddings ? 1 : accumulation);
  for (std::int64_t b = 1; b <= layers; ++b) {
    // Two decoder blocks stay: the last two of a forward for its backward, the first two of a backward for
    // the next forward.
    const std::int64_t forward = b <= 2 ? 1 : accumulation, backward = b <= layers - 2 ? accumulation : 0;
    gathers[static_cast<std::size_t>(b)] = forward + backward;
  }
  return gathers;
}

std::int64_t reduced_losses(const Inventory& inventory) {
  std::int64_t numbers = losses_of_tokens;
  for (const Parameter& parameter : inventory.parameters)
    if (parameter.role == Role::router)
      numbers += load_balancing::numbers_before_loads + parameter.shape.front();
  return numbers;
}

std::int64_t shared_loads(const Inventory& inventory) {
  std::int64_t loads = 0;
  for (const Parameter& parameter : inventory.parameters)
    if (parameter.role == Role::router) loads += parameter.shape.front();
  return loads;
}

namespace {
/// Of a set: between the ranks of a shard group, and between replicas.
StepVolume set_volume(const ParameterSet& set, const StepTraffic& traffic) {
  using enum Collective;
  const Inventory& inventory = set.partition.inventory;
  const auto gathers = block_gathers(inventory.blocks, traffic.accumulation, traffic.tied_embeddings);
  StepVolume volume;
  const Count gradients = Count(inventory.flat_size) * traffic.gradient_bytes;
  if (set.replicas.size > 1) volume.replica[all_reduce] = gradients.divided_exactly_by(set.state.size);
  if (!set.layout.shards_state()) return volume;
  volume.shard[all_reduce] = Count(norms) * fp64_bytes;
  const bool gains_apart = traffic.weight_bytes < fp32_bytes;
  if (gains_apart) volume.shard[all_reduce] += Count(norm_gains(inventory).flat_size) * fp32_bytes;
  volume.shard[reduce_scatter] = set.layout.shards_weights() ? traffic.accumulation * gradients : gradients;
  if (!set.layout.shards_weights()) {
    volume.shard[all_gather] = Count(inventory.flat_size) * traffic.weight_bytes;
    return volume;
  }
  const GatheredCodes codes = gathered_codes(inventory, traffic.linear, gains_apart);
  volume.shard[all_reduce] +=
      Count(codes.linears) * fp32_bytes + Count(codes.vectors.flat_size) * traffic.weight_bytes;
  for (std::int64_t b = 0; b < inventory.blocks; ++b)
    volume.shard[all_gather] += Count(gathers[static_cast<std::size_t>(b)]) * set.partition.block_size(b) *
                                (codes.of(b) ? code_bytes : traffic.weight_bytes);
  return volume;
}
}  // namespace

StepVolume step_volume(const Share& share, const StepTraffic& traffic) {
  using enum Collective;
  const ParameterSet& dense = share.sets.front();
  StepVolume volume = set_volume(dense, traffic);
  for (std::size_t set = 1; set < share.sets.size(); ++set) {
    const StepVolume experts = set_volume(share.sets[set], traffic);
    volume.experts = volume.experts + experts.shard + experts.replica;
  }
  if (share.groups.tokens.size == 1) return volume;
  volume.world[all_reduce] = Count(reduced_losses(dense.partition.inventory) + traffic.sources) * fp64_bytes;
  if (traffic.balance_of_batch)
    volume.world[all_reduce] +=
        traffic.accumulation * Count(shared_loads(dense.partition.inventory)) * fp64_bytes;
  return volume;
}

Volume tensor_volume(const Share& share, const TensorTraffic& traffic) {
  using enum Collective;
  Volume volume;
  const std::int64_t t = share.groups.tensor.size, holders = share.groups.holders.size;
  if (t == 1) return volume;
  // An attention and an MLP a layer; experts read and write a rank's own rows.
  const ModelSpec& model = share.model;
  const std::int64_t L = model.layers, mlps = L - model.sparse_layers(),
                     again = traffic.recompute == Recompute::block ? 1 : 0;
  const Count stream = Count(traffic.accumulation) * traffic.tokens * model.width * traffic.activation_bytes;
  volume[all_gather] = ((3 + again) * (L + mlps) + 2) * stream;
  volume[reduce_scatter] = ((2 + again) * L + 2 * mlps + 2) * stream;
  volume[all_reduce] = 3 * Count(traffic.accumulation) * traffic.tokens * traffic.statistic_bytes;
  // What routers count of a rank's own rows.
  const ParameterSet& dense = share.sets.front();
  volume[all_reduce] += Count(reduced_losses(dense.partition.inventory) - losses_of_tokens) * fp64_bytes;
  if (traffic.balance_of_batch)
    volume[all_reduce] += traffic.accumulation * Count(shared_loads(dense.partition.inventory)) * fp64_bytes;
  // Behind the last backward, summed in the order of the ranks from what all of them gave: each block's
  // shared gradients with an entry that pads them, and the sum of squares.
  const SharedEntries shared = shared_entries(dense, dense.state.number, t);
  volume[all_gather] += Count(norms) * t * fp64_bytes;
  for (std::size_t block = 0; block < shared.of_all.size(); ++block) {
    volume[all_gather] += Count(shared.of_all[block] + 1) * t * traffic.gradient_bytes;
    if (holders > 1 && holders < t)
      volume[all_gather] += Count(shared.of_some[block] + 1) * holders * traffic.gradient_bytes;
  }
  return volume;
}

Count most_visits(const ModelSpec& model, std::int64_t ranks, std::int64_t tokens,
                  std::int64_t accumulation) {
  return Count(accumulation) * model.sparse_layers() * tokens * std::min(model.experts->active, ranks);
}

Volume expert_volume(const ModelSpec& model, std::int64_t ranks, const ExpertTraffic& traffic) {
  using enum Collective;
  Volume volume;
  if (ranks == 1) return volume;
  const bool none = traffic.recompute == Recompute::none, block = traffic.recompute == Recompute::block;
  const std::int64_t routings = block ? 2 : 1;
  const Count rows = traffic.visits * model.width * traffic.activation_bytes,
              choices = traffic.visits * model.experts->active;
  volume[all_to_all] =
      (4 + (none ? 0 : 1) + (block ? 1 : 0)) * rows +
      choices * (routings * (count_bytes + traffic.statistic_bytes) + traffic.statistic_bytes) +
      routings * Count(traffic.accumulation) * model.sparse_layers() * ranks * 2 * count_bytes;
  volume[all_gather] = Count(norms) * ranks * fp64_bytes;
  // The amax of what each grouped GEMM casts: rows, and the weight there or, of both weights, once a step.
  const bool once = traffic.linear.weights == QuantiseWeights::step;
  const std::int64_t casts = traffic.accumulation * (block ? 5 : 4) * (once ? 1 : 2) + (once ? 2 : 0);
  for (std::int64_t layer = 0; layer < model.layers; ++layer)
    if (model.sparse(layer) && traffic.linear.of_experts(layer + 1, model.layers) != quantise::Recipe::none)
      volume[all_reduce] += Count(casts) * fp32_bytes;
  return volume;
}

double sent_bytes(const Volume& volume, std::int64_t ranks) {
  double in_rings = 0;
  for (const CollectiveFacts& each : collective_table)
    in_rings += each.ring * volume[each.collective].to_double();
  return static_cast<double>(ranks - 1) / static_cast<double>(ranks) * in_rings;
}

}  // namespace assay::spec
