#include "spec/metrics/scaling.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "spec/error.hpp"
#include "spec/metrics/metrics.hpp"

namespace assay::spec::metrics {

namespace {
/// Seconds of a step by where they go.
struct Parts {
  double waiting = 0, compute = 0, fixed = 0;
};

Parts parts_of(const record::Step& step) {
  const record::Phases& p = step.phases;
  return {.waiting = p.reduce,
          .compute = p.forward + p.backward,
          .fixed = p.data_wait + p.clip + p.update + p.checkpoint + p.other};
}

/// The step of median seconds, of two the faster one.
record::Step median_step(const record::Run& run, std::int64_t skip) {
  // scaling_c1
  require(skip >= 0 && static_cast<std::int64_t>(run.steps.size()) > skip, "scaling_c1", [&] {
    return "a run of " + std::to_string(run.start.ranks.size()) + " ranks has " +
           std::to_string(run.steps.size()) + " steps, of which the first " + std::to_string(skip) +
           " do not count";
  });
  std::vector<record::Step> steps(run.steps.begin() + skip, run.steps.end());
  std::sort(steps.begin(), steps.end(), [](const auto& a, const auto& b) { return a.seconds < b.seconds; });
  return steps[(steps.size() - 1) / 2];
}

ScalingRow row_of(const record::Run& run, const record::Step& step) {
  std::set<std::string> hosts;
  for (const record::RankPlace& place : run.start.ranks) hosts.insert(place.host);
  ScalingRow row{.ranks = run.start.batch.ranks,
                 .hosts = static_cast<std::int64_t>(hosts.size()),
                 .layout = run.start.layout ? run.start.layout->data : "replicate",
                 .sequences = run.start.batch.sequences,
                 .accumulation = run.start.batch.accumulation,
                 .step_seconds = step.seconds,
                 .mfu = step.mfu};
  row.tokens_per_second = tokens_per_second(Count(step.tokens), step.seconds);
  row.tokens_per_second_of_rank = row.tokens_per_second / static_cast<double>(row.ranks);
  row.exposed = step.phases.reduce / step.seconds;
  return row;
}
}  // namespace

std::vector<ScalingRow> scaling_table(const std::vector<record::Run>& runs, std::int64_t skip) {
  // scaling_c1
  require(!runs.empty(), "scaling_c1", [] { return std::string("no runs"); });
  std::vector<const record::Run*> ordered;
  ordered.reserve(runs.size());
  for (const record::Run& run : runs) ordered.push_back(&run);
  std::stable_sort(ordered.begin(), ordered.end(),
                   [](const auto* a, const auto* b) { return a->start.batch.ranks < b->start.batch.ranks; });
  const record::Step base = median_step(*ordered.front(), skip);
  const double base_tokens =
      static_cast<double>(base.tokens) / static_cast<double>(ordered.front()->start.batch.ranks);
  const Parts base_parts = parts_of(base);
  std::vector<ScalingRow> rows;
  for (const record::Run* run : ordered) {
    const record::Step step = median_step(*run, skip);
    ScalingRow row = row_of(*run, step);
    row.efficiency = scaling_efficiency(row.tokens_per_second, row.ranks,
                                        tokens_per_second(Count(base.tokens), base.seconds),
                                        ordered.front()->start.batch.ranks);
    const double tokens = static_cast<double>(step.tokens) / static_cast<double>(row.ranks);
    const auto lost = [&](double seconds, double base_seconds) {
      return (seconds / tokens - base_seconds / base_tokens) / (step.seconds / tokens);
    };
    const Parts parts = parts_of(step);
    row.lost_waiting = lost(parts.waiting, base_parts.waiting);
    row.lost_compute = lost(parts.compute, base_parts.compute);
    row.lost_fixed = lost(parts.fixed, base_parts.fixed);
    rows.push_back(row);
  }
  return rows;
}

StepDifferences step_differences(const std::vector<record::Run>& runs) {
  StepDifferences worst;
  const auto widen = [](double& place, double mine, double first) {
    const double apart = std::abs(mine - first) / std::abs(first);
    if (!(apart <= place)) place = apart;  // and where it is no number
  };
  for (std::size_t r = 1; r < runs.size(); ++r)
    for (std::size_t i = 0; i < std::min(runs[r].steps.size(), runs.front().steps.size()); ++i) {
      const record::Step &mine = runs[r].steps[i], &first = runs.front().steps[i];
      // scaling_c2
      require(mine.sample_hash == first.sample_hash, "scaling_c2", [&] {
        return "step " + std::to_string(mine.step) + " of " + std::to_string(runs[r].start.batch.ranks) +
               " ranks trains on other samples than that of " +
               std::to_string(runs.front().start.batch.ranks);
      });
      widen(i == 0 ? worst.first_loss : worst.later_loss, mine.loss, first.loss);
      if (i == 0) widen(worst.first_gradient_norm, mine.gradient_norm, first.gradient_norm);
    }
  return worst;
}

StepDifferences most_differences(Dtype dtype, double tokens) {
  // Roundings of a sum of 4,096 products in the dtype itself, at random: 64 u; bf16 sums in fp32. Through 8
  // such sums.
  const double entry = unit_roundoff(dtype) * 8 * (dtype == Dtype::bf16 ? 1 : 64);
  constexpr double carried_on = 1e-3;  // chosen, before anything was compared
  return {entry / std::sqrt(tokens), entry,
          dtype == Dtype::bf16 ? std::numeric_limits<double>::infinity() : carried_on};
}

bool agree(const StepDifferences& found, const StepDifferences& most) {
  return found.first_loss <= most.first_loss && found.first_gradient_norm <= most.first_gradient_norm &&
         found.later_loss <= most.later_loss;
}

}  // namespace assay::spec::metrics
