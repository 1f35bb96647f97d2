#pragma once
// What more ranks bring, and where the lost part goes: definitions in spec/metrics/scaling.md.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "spec/record/run.hpp"
#include "spec/tolerance.hpp"

namespace assay::spec::metrics {

/// One line of a scaling table. Shares are of 1.
struct ScalingRow {
  std::int64_t ranks = 0, hosts = 0;
  std::string layout;
  std::int64_t sequences = 0, accumulation = 0;  ///< of a step
  double step_seconds = 0;                       ///< median
  double tokens_per_second = 0;                  ///< of all ranks together
  double tokens_per_second_of_rank = 0;
  double efficiency = 0;
  std::optional<double> mfu;
  double exposed = 0;
  double lost_waiting = 0, lost_compute = 0, lost_fixed = 0;  ///< they add up to 1 - efficiency
};

/// A row for each run, in order of ranks. Errors: SpecError scaling_c1.
std::vector<ScalingRow> scaling_table(const std::vector<record::Run>& runs, std::int64_t skip);

/// Relative differences of losses between runs of strong scaling.
struct LossDifference {
  double first = 0;  ///< of the first step: losses of the same weights
  double later = 0;  ///< largest of the steps behind it
};

/// Of the steps that all runs have. Errors: SpecError scaling_c2 where the samples of a step differ.
LossDifference loss_difference(const std::vector<record::Run>& runs);

/// Largest differences that roundings explain where `dtype` computes: scaling_c2.
LossDifference most_loss_difference(Dtype dtype);
bool losses_agree(const LossDifference& found, Dtype dtype);

}  // namespace assay::spec::metrics
