#pragma once
// What more ranks bring, and where the lost part goes: definitions in spec/metrics/scaling.md.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "spec/record/run.hpp"

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

/// Largest relative difference of a loss between runs of strong scaling, from the first step that all have.
/// Errors: SpecError scaling_c2 where the samples of a step differ.
double loss_difference(const std::vector<record::Run>& runs);

/// Largest difference of the losses of scaling_c2.
inline constexpr double most_loss_difference = 1e-3;

}  // namespace assay::spec::metrics
