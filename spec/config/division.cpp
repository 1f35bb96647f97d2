#include "spec/config/division.hpp"

#include <algorithm>
#include <string>

#include "spec/batch/nearest_batch.hpp"
#include "spec/config/check.hpp"
#include "spec/error.hpp"
#include "spec/parallel/expert_ranks.hpp"
#include "spec/parallel/placement.hpp"
#include "spec/text/ranks.hpp"

namespace assay::spec {
namespace {

using Numbers = std::vector<std::int64_t>;

Division divided(const RunConfig& config, const ModelSpec& model, const RunRanks& ranks) {
  const std::int64_t of_data = data_ranks(config, ranks.all);
  const Batch batch = batch_of(
      config.sequences, config.ramp.empty() ? config.micro : micro_sequences(config, of_data), of_data);
  check_tensor_ranks(model, config.tensor_ranks, batch.micro * config.sequence_length);
  const Layout layout = layout_on(config, ranks);
  check_expert_ranks(model, config.expert_ranks, layout, config.tensor_ranks, batch.micro);
  return {batch, layout};
}

bool division_holds(RunConfig config, const Degrees& degrees, const ModelSpec& model, const RunRanks& ranks) {
  config.tensor_ranks = degrees.tensor, config.shard_ranks = degrees.shard_ranks;
  try {
    check(config);
    divided(config, model, ranks);
    return true;
  } catch (const SpecError&) {
    return false;
  } catch (const UserError&) {  // of the batch
    return false;
  }
}

/// Numbers of ranks on which these degrees hold, on one host or on more of the same hosts.
Numbers valid_ranks(const RunConfig& config, const Degrees& degrees, const ModelSpec& model,
                    const RunRanks& now) {
  const bool one_host = now.per_host == now.all;
  Numbers valid;
  for (const std::int64_t data : divisors(config.sequences)) {
    const std::int64_t all = data * degrees.tensor;
    const bool whole_hosts = one_host || now.per_host == 0 || all % now.per_host == 0;
    if (whole_hosts && division_holds(config, degrees, model, {all, one_host ? all : now.per_host}))
      valid.push_back(all);
  }
  return valid;
}

/// Expert degrees that hold with the other degrees as they are.
Numbers valid_experts(RunConfig config, const ModelSpec& model, const RunRanks& ranks) {
  Numbers valid;
  const Degrees degrees{config.tensor_ranks, config.shard_ranks};
  for (const std::int64_t each : divisors(model.experts ? model.experts->count : 1)) {
    config.expert_ranks = each;
    if (division_holds(config, degrees, model, ranks)) valid.push_back(each);
  }
  return valid;
}

/// Micro-batches that hold with the degrees as they are.
Numbers valid_micro(RunConfig config, const ModelSpec& model, const RunRanks& ranks) {
  Numbers valid;
  for (const std::int64_t each : divisors(config.sequences)) {
    config.micro = each;
    if (division_holds(config, {config.tensor_ranks, config.shard_ranks}, model, ranks))
      valid.push_back(each);
  }
  return valid;
}

/// "set parallel.shard_ranks to 2, or parallel.tensor to 2, or start 16 ranks".
std::string nearest_ways(const RunConfig& config, const ModelSpec& model, const RunRanks& ranks) {
  const Degrees asked{config.tensor_ranks, config.shard_ranks};
  const std::vector<Degrees> valid = valid_degrees(config, model, ranks);
  Numbers shards, tensors;
  for (const Degrees& each : valid) {
    if (each.tensor == asked.tensor && each.shard_ranks > 0) shards.push_back(each.shard_ranks);
    if (each.shard_ranks == asked.shard_ranks) tensors.push_back(each.tensor);
  }
  std::string text;
  const auto add = [&](const std::string& way) { text += (text.empty() ? "" : ", or ") + way; };
  const auto set = [&](const std::string& setting) { add((text.empty() ? "set " : "") + setting); };
  if (const Numbers micro = valid_micro(config, model, ranks); config.micro > 0 && !micro.empty())
    set("batch.micro to " + nearest_of(micro, config.micro));
  const std::int64_t shard_ranks =
      asked.shard_ranks > 0 ? asked.shard_ranks : std::max<std::int64_t>(1, ranks.per_host / asked.tensor);
  if (!shards.empty()) set("parallel.shard_ranks to " + nearest_of(shards, shard_ranks));
  if (const Numbers experts = valid_experts(config, model, ranks);
      config.expert_ranks > 1 && !experts.empty())
    set("parallel.expert to " + nearest_of(experts, config.expert_ranks));
  if (!tensors.empty()) set("parallel.tensor to " + nearest_of(tensors, asked.tensor));
  if (const Numbers counts = valid_ranks(config, asked, model, ranks); !counts.empty())
    add("start " + nearest_of(counts, ranks.all) + " ranks");
  if (text.empty() && !valid.empty()) {
    const auto above = std::find_if(valid.begin(), valid.end(),
                                    [&](const Degrees& each) { return each.tensor > asked.tensor; });
    const Degrees& both = above == valid.begin() ? *above : *(above - 1);
    set("parallel.tensor to " + std::to_string(both.tensor) + " and parallel.shard_ranks to " +
        std::to_string(both.shard_ranks));
  }
  if (const Numbers counts = valid_ranks(config, {}, model, ranks); text.empty() && !counts.empty())
    add("start " + nearest_of(counts, ranks.all) + " ranks without parallel.tensor");
  return text;
}

/// "8 ranks (2 data-parallel ranks of 4 tensor ranks)".
std::string ranks_described(const RunRanks& ranks, std::int64_t tensor) {
  const std::string all = ranks_text(ranks.all);
  return tensor == 1 || ranks.all % tensor != 0
             ? all
             : all + " (" + data_ranks_text(ranks.all / tensor, tensor) + ")";
}

}  // namespace

Layout layout_on(const RunConfig& config, const RunRanks& ranks) {
  // config_c14
  require(config.data_parallel != DataParallel::hybrid || config.shard_ranks > 0 ||
              ranks.per_host % config.tensor_ranks == 0,
          "config_c14", [&] {
            return "parallel.data = \"hybrid\" takes the data-parallel ranks of a host for a shard group, "
                   "and parallel.tensor = " +
                   std::to_string(config.tensor_ranks) + " does not divide the " +
                   ranks_text(ranks.per_host) + " of a host";
          });
  return layout_of(config.data_parallel, data_ranks(config, ranks.all), config.shard_ranks,
                   ranks.per_host / config.tensor_ranks);
}

std::vector<Degrees> valid_degrees(const RunConfig& config, const ModelSpec& model, const RunRanks& ranks) {
  std::vector<Degrees> valid;
  for (const std::int64_t tensor : divisors(model.heads)) {
    // Each data-parallel rank reads a sequence at least.
    if (ranks.all % tensor != 0 || ranks.all / tensor > config.sequences) continue;
    Numbers shards = {config.shard_ranks};
    if (config.data_parallel == DataParallel::hybrid) {
      shards = divisors(ranks.all / tensor);
      shards.insert(shards.begin(), 0);
    }
    for (const std::int64_t shard_ranks : shards)
      if (division_holds(config, {tensor, shard_ranks}, model, ranks)) valid.push_back({tensor, shard_ranks});
  }
  return valid;
}

Division divide(const RunConfig& config, const ModelSpec& model, const RunRanks& ranks) {
  try {
    return divided(config, model, ranks);
  } catch (const SpecError& error) {
    const std::string ways = nearest_ways(config, model, ranks);
    throw SpecError(error.label(), error.values() + "; this run has " +
                                       ranks_described(ranks, config.tensor_ranks) +
                                       (ways.empty() ? "" : ": " + ways));
  }
}

}  // namespace assay::spec
