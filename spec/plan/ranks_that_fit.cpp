#include "spec/plan/ranks_that_fit.hpp"

#include "spec/batch/nearest_batch.hpp"
#include "spec/parallel/expert_ranks.hpp"
#include "spec/parallel/placement.hpp"
#include "spec/plan/layouts_that_fit.hpp"

namespace assay::spec::memory {

namespace {

/// The setting of a rank of another division, with the asked micro-batch or the largest below it that divides
/// what the rank reads, and which the tensor ranks may split; nothing where there is none.
std::optional<Setting> divided_setting(const Setting& asked, const ModelSpec& model, const Layout& layout,
                                       std::int64_t tensor_ranks) {
  const std::int64_t sequences =
      asked.micro * asked.micro_batches * asked.layout.batch_ranks() / layout.batch_ranks();
  Setting other = asked;
  other.model = tensor_model(model, tensor_ranks), other.whole = model;
  other.tensor_ranks = tensor_ranks, other.layout = layout;
  other.common_sequences = asked.common_sequences * asked.layout.batch_ranks() / layout.batch_ranks();
  other.micro = 0;
  for (const std::int64_t micro : divisors(sequences))
    if (micro <= asked.micro && micro_holds(other, micro)) other.micro = micro;
  if (other.micro == 0) return {};
  other.micro_batches = sequences / other.micro;
  return other;
}

}  // namespace

std::vector<RanksWay> ranks_that_fit(const RunConfig& config, const ModelSpec& model, const Setting& setting,
                                     const RunRanks& ranks, const Count& capacity) {
  std::vector<RanksWay> found;
  const auto fits = [&](const RunConfig& other) {
    const Layout layout = layout_on(other, ranks);
    const auto of_rank = divided_setting(setting, model, layout, other.tensor_ranks);
    const auto way = of_rank ? way_of(*of_rank, capacity) : std::nullopt;
    if (way) found.push_back({other.tensor_ranks, layout, *way});
    return way.has_value();
  };
  const auto valid = [&](const RunConfig& other, std::int64_t tensor_ranks) {
    for (const Degrees& each : valid_degrees(other, model, ranks))
      if (each.tensor == tensor_ranks && each.shard_ranks == other.shard_ranks) return true;
    return false;
  };
  RunConfig other = config;
  other.micro = 0;  // the setting's, or less
  if (ranks.all > setting.layout.ranks * setting.tensor_ranks)
    for (const DataParallel data : {DataParallel::zero1, DataParallel::shard}) {
      RunConfig sharded = other;
      sharded.data_parallel = data, sharded.shard_ranks = 0;
      if (valid(sharded, sharded.tensor_ranks)) fits(sharded);
    }
  for (const Degrees& each : valid_degrees(other, model, ranks)) {
    if (each.tensor <= setting.tensor_ranks || each.shard_ranks != config.shard_ranks) continue;
    other.tensor_ranks = each.tensor;
    if (fits(other)) break;
  }
  return found;
}

}  // namespace assay::spec::memory
