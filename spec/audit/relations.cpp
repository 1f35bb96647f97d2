#include "spec/audit/relations.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "spec/audit/conventions.hpp"

namespace assay::spec::audit {
namespace {

constexpr std::string_view relation_names[] = {"ranks",
                                               "sequences",
                                               "tokens_per_step",
                                               "step_tokens",
                                               "step_sequences",
                                               "rate_time",
                                               "sequences_rate",
                                               "gpu_rate",
                                               "flops_rate",
                                               "mfu",
                                               "mfu_of_flops_rate",
                                               "flops_rate_of_batch",
                                               "mfu_of_batch",
                                               "peak",
                                               "flops_per_token",
                                               "parameters",
                                               "parameters_nonembedding",
                                               "ffn_flops_per_layer",
                                               "device_memory",
                                               "tokens_total",
                                               "sequences_total",
                                               "wall_clock",
                                               "rate_wall_clock",
                                               "expected_rate",
                                               "summary_tokens"};
static_assert(std::size(relation_names) == relation_count);

/// Rates that a line prints beside its tokens/s, of the same steps.
void compare_side_rates(const Evidence& e, Comparisons& out) {
  Comparison &sequences = at(out, Relation::sequences_rate), &of_gpu = at(out, Relation::gpu_rate);
  const auto stated = e.of(Setting::sequences);
  bool any_sequences = false, any_of_gpu = false;
  for (std::size_t i = 0; i < e.steps.size(); ++i) {
    const Step& s = *e.steps[i];
    const auto &rate = s[Field::sequences_per_second], &seconds = s[Field::seconds],
               &batch = s[Field::step_sequences], &all = s[Field::tokens_per_second],
               &one = s[Field::gpu_tokens_per_second];
    any_sequences |= usable(rate), any_of_gpu |= usable(one);
    const auto done = usable(batch) ? std::optional(wide(*batch)) : stated;
    if (usable(rate) && usable(seconds) && done)
      add_sample(sequences, *rate, *done / wide(*seconds), static_cast<std::int64_t>(i));
    if (usable(one) && usable(all) && e.gpus)
      add_sample(of_gpu, *one, wide(*all) / exact_interval(*e.gpus), static_cast<std::int64_t>(i));
  }
  sequences.missing = any_sequences ? "step time and sequences per step" : "sequences/s";
  of_gpu.missing = any_of_gpu ? "number of GPUs" : "tokens/s of one GPU beside that of all";
}

/// Of a GPU's memory a driver keeps some for itself, and error correction of GDDR takes 1/16: of the 24 GiB
/// of an A10 or L4 PyTorch reports 22.03 (0.918) in public logs, the least on record. Chosen below that.
/// [share]
constexpr double least_reported = 0.90;

void compare_facts(const Evidence& e, Comparisons& out) {
  const RunRecord& r = e.record;
  Comparison& peak = at(out, Relation::peak);
  const Printed* printed = e.printed_peak();
  if (!printed)
    peak.missing = "peak";
  else if (!e.dense_peak)
    peak.missing = e.no_gpu();
  else if (!e.gpus)
    peak.missing = "number of GPUs";
  else {
    // Other editions of a data sheet round otherwise.
    const Interval sheet = {*e.dense_peak * (1 - off_by_three_digits),
                            *e.dense_peak * (1 + off_by_three_digits)};
    add_sample(
        peak, *printed,
        Interval{std::min(sheet.low, e.written_peak->low), std::max(sheet.high, e.written_peak->high)} *
            exact_interval(*e.gpus));
  }

  Comparison& memory = at(out, Relation::device_memory);
  const Fact* fact = e.gpu.gpu && e.gpu.gpu->memory ? &*e.gpu.gpu->memory : nullptr;
  if (!usable(r[Setting::gpu_memory]))
    memory.missing = "memory of the GPU";
  else if (!fact)
    memory.missing = e.no_gpu();
  else  // a driver never reports more than is mounted
    add_sample(memory, *r[Setting::gpu_memory], {fact->value * least_reported, *most_memory(*e.gpu.gpu)});

  Comparison& expected = at(out, Relation::expected_rate);
  const auto& half = r[Setting::expected_tokens_per_second_half_mfu];
  const auto per_token =
      e.steps.empty() ? e.of(Setting::flops_per_token) : e.flops_per_token(*e.steps.back());
  if (!usable(half))
    expected.missing = "expected tokens/s";
  else if (!printed || !per_token)
    expected.missing = printed ? "FLOPs per token" : "peak";
  else
    add_sample(expected, *half, wide(*printed) * exact_interval(0.5) / *per_token);
}

}  // namespace

void add_sample(Comparison& to, const Printed& printed, Interval recomputed, std::int64_t step,
                double likely) {
  if (!(recomputed.low > 0) || !std::isfinite(recomputed.high)) return;
  const Interval shown = wide(printed);
  if (!(shown.low > 0)) return;
  to.samples.push_back({{shown.low / recomputed.high, shown.high / recomputed.low},
                        printed.value,
                        recomputed,
                        printed.line,
                        step,
                        likely > 0 ? printed.value / likely : 0});
}

Shared shared_factor(const std::vector<Interval>& ratios) {
  std::vector<std::pair<double, int>> ends;
  ends.reserve(2 * ratios.size());
  constexpr double any = std::numeric_limits<double>::infinity();
  Interval all{-any, any};
  for (const Interval& ratio : ratios) {
    ends.emplace_back(ratio.low * (1 - 1e-9), -1);
    all.low = std::max(all.low, ends.back().first);
    ends.emplace_back(ratio.high * (1 + 1e-9), 1);
    all.high = std::min(all.high, ends.back().first);
  }
  // Those of most logs have one in common: nothing is to be sorted.
  if (!ratios.empty() && all.low <= all.high) return {ratios.size(), all};
  std::sort(ends.begin(), ends.end());
  Shared out;
  std::size_t open = 0;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    if (ends[i].second > 0) {
      --open;
    } else if (++open > out.ratios) {
      out.ratios = open;
      out.factor = {ends[i].first, ends[i + 1].first};
    }
  }
  return out;
}

std::size_t best_way(const Comparison& comparison, double factor) {
  std::size_t best = 0, fewest = comparison.samples.size() + 1;
  for (std::size_t way = 0; way < comparison.ways.size(); ++way) {
    std::size_t misses = 0;
    for (const Sample& sample : comparison.samples)
      if (!holds(comparison, sample, factor, way) && ++misses >= fewest) break;
    if (misses < fewest) fewest = misses, best = way;
  }
  return best;
}

Interval all_ways(const Comparison& comparison) {
  if (comparison.ways.empty()) return {1, 1};
  Interval out = comparison.ways.front().scale;
  for (const FlopCounting& way : comparison.ways)
    out = {std::min(out.low, way.scale.low), std::max(out.high, way.scale.high)};
  return out;
}

std::string_view to_string(Relation relation) { return relation_names[static_cast<std::size_t>(relation)]; }

Comparisons compare(const Evidence& evidence) {
  Comparisons out;
  compare_batches(evidence, out);
  compare_rates(evidence, out);
  compare_side_rates(evidence, out);
  compare_facts(evidence, out);
  compare_model(evidence, out);
  compare_clock(evidence, out);
  compare_summary(evidence, out);
  return out;
}

}  // namespace assay::spec::audit
