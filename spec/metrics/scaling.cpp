#include "spec/metrics/scaling.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "spec/error.hpp"
#include "spec/metrics/metrics.hpp"

namespace assay::spec::metrics {

namespace {
/// Seconds of a step by group of phases.
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
  for (const record::RankPlacement& placement : run.start.ranks) hosts.insert(placement.host);
  const std::int64_t sequences = sequences_of(record::global_batch(run.start), step.step - 1);
  ScalingRow row{.ranks = static_cast<std::int64_t>(run.start.ranks.size()),
                 .tensor_ranks = run.start.tensor_ranks.value_or(1),
                 .hosts = static_cast<std::int64_t>(hosts.size()),
                 .layout = run.start.layout ? run.start.layout->data : "replicate",
                 .sequences = sequences,
                 .accumulation = run.start.batch.accumulation * sequences / run.start.batch.sequences,
                 .step_seconds = step.seconds,
                 .mfu = step.mfu};
  if (row.ranks == 1) row.gpu = run.start.ranks.front().gpu.value_or("");
  row.tokens_per_second = tokens_per_second(Count(step.tokens), step.seconds);
  row.tokens_per_second_of_rank = row.tokens_per_second / static_cast<double>(row.ranks);
  row.exposed = step.phases.reduce / step.seconds;
  return row;
}

/// The step of median seconds of a run.
struct Measured {
  ScalingRow row;     ///< without the columns that compare runs
  Parts parts;        ///< of the step
  double tokens = 0;  ///< of a rank's step
};

Measured measured_of(const record::Run& run, const record::Step& step) {
  Measured measured{.row = row_of(run, step), .parts = parts_of(step)};
  measured.tokens = static_cast<double>(step.tokens) / static_cast<double>(measured.row.ranks);
  return measured;
}
}  // namespace

std::vector<ScalingRow> scaling_table(const std::vector<record::Run>& runs, std::int64_t skip) {
  // scaling_c1
  require(!runs.empty(), "scaling_c1", [] { return std::string("no runs"); });
  std::vector<Measured> measured;
  measured.reserve(runs.size());
  for (const record::Run& run : runs) measured.push_back(measured_of(run, median_step(run, skip)));
  std::stable_sort(measured.begin(), measured.end(),
                   [](const auto& a, const auto& b) { return a.row.ranks < b.row.ranks; });
  const auto others = std::find_if(measured.begin(), measured.end(), [&](const Measured& m) {
    return m.row.ranks > measured.front().row.ranks;
  });
  const auto rate = [](const Measured& m) { return m.row.tokens_per_second_of_rank; };
  // Copied: rows are changed below.
  const Measured slowest = *std::min_element(measured.begin(), others,
                                             [&](const auto& a, const auto& b) { return rate(a) < rate(b); });
  double mean = 0;
  for (auto base = measured.begin(); base != others; ++base)
    mean += rate(*base) / static_cast<double>(others - measured.begin());
  std::vector<ScalingRow> rows;
  rows.reserve(measured.size());
  for (auto m = measured.begin(); m != measured.end(); ++m) {
    // A GPU by itself waits for no other one: it is its own base.
    const Measured& base = m < others ? *m : slowest;
    const double kept = rate(base) / mean;
    ScalingRow row = m->row;
    row.efficiency = rate(*m) / mean;
    row.lost_imbalance = 1 - kept;
    const auto lost = [&](double seconds, double base_seconds) {
      return kept * (seconds / m->tokens - base_seconds / base.tokens) / (row.step_seconds / m->tokens);
    };
    row.lost_waiting = lost(m->parts.waiting, base.parts.waiting);
    row.lost_compute = lost(m->parts.compute, base.parts.compute);
    row.lost_fixed = lost(m->parts.fixed, base.parts.fixed);
    rows.push_back(row);
  }
  return rows;
}

StepDifferences step_differences(const std::vector<record::Run>& runs) {
  StepDifferences worst;
  const auto widen = [](double& largest, double mine, double first) {
    const double apart = std::abs(mine - first) / std::abs(first);
    if (!(apart <= largest)) largest = apart;  // and where it is no number
  };
  for (std::size_t r = 1; r < runs.size(); ++r)
    for (std::size_t i = 0; i < std::min(runs[r].steps.size(), runs.front().steps.size()); ++i) {
      const record::Step &mine = runs[r].steps[i], &first = runs.front().steps[i];
      // scaling_c2
      require(mine.sample_hash == first.sample_hash, "scaling_c2", [&] {
        return "step " + std::to_string(mine.step) + " of " + std::to_string(runs[r].start.ranks.size()) +
               " ranks trains on other samples than that of " +
               std::to_string(runs.front().start.ranks.size());
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
