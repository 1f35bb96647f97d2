#include "spec/plan/plan.hpp"

#include <algorithm>
#include <cmath>

#include "spec/batch/nearest_batch.hpp"
#include "spec/data/validation_set.hpp"
#include "spec/memory/expert_load.hpp"
#include "spec/parallel/expert_ranks.hpp"
#include "spec/parallel/placement.hpp"

namespace assay::spec::memory {

namespace {

Count peak_of(const Setting& setting) {
  Ledger ledger;
  paper::walk(setting, share_of(setting), ledger);
  return ledger.peak();
}

bool quantises(const Setting& setting, std::int64_t tokens) {
  try {
    check(setting.linear, setting.model, tokens);
    return true;
  } catch (const SpecError&) {
    return false;
  }
}

/// The largest micro-batch below the asked one that fits with `recompute`. A smaller one never needs more.
std::optional<Way> largest_micro(Setting setting, Recompute recompute, const Count& capacity) {
  const std::int64_t sequences = setting.micro * setting.micro_batches;
  setting.recompute = recompute;
  const auto peak = [&](std::int64_t micro) {
    setting.micro = micro;
    setting.micro_batches = sequences / micro;
    return peak_of(setting);
  };
  std::vector<std::int64_t> candidates = divisors(sequences);
  std::erase_if(candidates, [&, asked = setting.micro](std::int64_t micro) {
    return micro >= asked || !micro_holds(setting, micro);
  });
  const auto beyond = std::partition_point(candidates.begin(), candidates.end(),
                                           [&](std::int64_t micro) { return peak(micro) <= capacity; });
  if (beyond == candidates.begin()) return {};
  return Way{.micro = *(beyond - 1), .recompute = recompute, .peak = peak(*(beyond - 1))};
}

}  // namespace

bool micro_holds(const Setting& setting, std::int64_t micro) {
  return tensor_ranks_divide(setting.model, micro, setting.sequence_length, setting.tensor_ranks) &&
         setting.common_sequences % micro == 0 && quantises(setting, micro * setting.sequence_length);
}

Setting setting_of(const RunConfig& config, const ModelSpec& model, const Batch& batch, Machine machine) {
  return {.model = tensor_model(model, config.tensor_ranks),
          .dtype = config.dtype,
          .states = config.states,
          .linear = linear_precision(config, model),
          .machine = machine,
          .recompute = config.recompute,
          .micro = batch.micro,
          .sequence_length = config.sequence_length,
          .micro_batches = batch.accumulation,
          .staged_steps = machine == Machine::cuda ? config.prefetch + 2 : 1,
          .attention = config.attention,
          .fixed_order = config.deterministic == Determinism::on,
          .auxiliary = {.probabilities = config.balance > 0,
                        .logits = config.router_z > 0,
                        .of_batch = config.balance_over == load_balancing::Form::running},
          .capacity = config.capacity,
          .sources = std::ssize(config.mixture),
          .documents = has_documents(config),
          .layout = layout_of(config.data_parallel, batch.ranks, config.shard_ranks, batch.ranks),
          .tensor_ranks = config.tensor_ranks,
          .expert_ranks = config.expert_ranks,
          .whole = config.tensor_ranks > 1 ? std::optional(model) : std::nullopt,
          .rounded_sums = config.dtype == Dtype::bf16 && config.reduce == Dtype::bf16,
          .validation_batch =
              validates(config)
                  ? data::validation_batch(config.sequence_length, config.eval_sequences, token_unit(config))
                  : 0,
          .captured = machine == Machine::cuda && config.cuda_graph && batch.ranks * config.tensor_ranks == 1,
          .sampled = config.data_paths.empty() ? config.sample_sentences : 0,
          .common_sequences = common_sequences(config) / batch.ranks};
}

Plan plan(const Setting& setting) {
  const Share share = share_of(setting);
  Ledger first;
  paper::walk(setting, share, first);
  Ledger second(first.peak_number());
  paper::walk(setting, share, second);
  Plan plan{.setting = setting,
            .state = {},
            .peak = first.peak(),
            .moment = first.peak_moment(),
            .items = second.items()};
  for (const Item& item : plan.items)
    if (item.purpose == Purpose::state) plan.state += item.bytes;
  std::stable_sort(plan.items.begin(), plan.items.end(),
                   [](const Item& a, const Item& b) { return a.bytes > b.bytes; });
  return plan;
}

Fit fit(const Setting& setting, const Count& capacity) {
  Fit fit;
  fit.asked = peak_of(setting) <= capacity;
  if (fit.asked) return fit;
  fit.smaller_micro = largest_micro(setting, setting.recompute, capacity);
  for (const Recompute recompute : recomputes_of(setting.model)) {  // from the fewest FLOPs to the most
    Setting other = setting;
    other.recompute = recompute;
    const Count peak = peak_of(other);
    if (peak <= capacity && !fit.recompute)
      fit.recompute = Way{.micro = setting.micro, .recompute = recompute, .peak = peak};
    const auto way = largest_micro(setting, recompute, capacity);
    if (way && (!fit.both || way->micro > fit.both->micro)) fit.both = way;
  }
  return fit;
}

double load_that_fits(const Setting& setting, const Count& capacity) {
  const Share share = share_of(setting);
  const auto fits = [&](double load) {
    Setting other = setting;
    other.load = load;
    Ledger ledger;
    paper::walk(other, share, ledger);
    return ledger.peak() <= capacity;
  };
  const double most = most_load(setting);
  if (fits(most)) return most;
  std::int64_t low = 100, high = static_cast<std::int64_t>(std::floor(100 * most));  // in hundredths
  while (low < high) {
    const std::int64_t middle = low + (high - low + 1) / 2;
    if (fits(static_cast<double>(middle) / 100))
      low = middle;
    else
      high = middle - 1;
  }
  return static_cast<double>(low) / 100;
}

}  // namespace assay::spec::memory
