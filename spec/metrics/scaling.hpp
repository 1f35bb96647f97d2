#pragma once
// What more ranks bring, and where the lost part goes: definitions in spec/metrics/scaling.md.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "spec/record/run.hpp"
#include "spec/tolerance.hpp"

namespace assay::spec::metrics {

/// One line of a scaling table. Fractions are of 1.
struct ScalingRow {
  std::int64_t ranks = 0;         ///< all of them
  std::int64_t tensor_ranks = 1;  ///< of which each data-parallel rank is made
  std::int64_t hosts = 0;
  std::string layout;
  std::string gpu{};  ///< of a rank by itself: its UUID; empty for several ranks, and without a GPU
  std::int64_t sequences = 0, accumulation = 0;  ///< of a step
  double step_seconds = 0;                       ///< median
  double tokens_per_second = 0;                  ///< of all ranks together
  double tokens_per_second_of_rank = 0;
  double efficiency = 0;
  std::optional<double> mfu;
  double exposed = 0;
  /// They add up to 1 - efficiency. Imbalance: how far the slowest of several base runs is below their mean.
  double lost_imbalance = 0, lost_waiting = 0, lost_compute = 0, lost_fixed = 0;
};

/// A row for each run, in order of ranks. Several runs with the fewest ranks are those of different GPUs, by
/// themselves at the same time. Errors: SpecError scaling_c1.
std::vector<ScalingRow> scaling_table(const std::vector<record::Run>& runs, std::int64_t skip);

/// Relative differences between runs of strong scaling, the largest of all runs to the first.
struct StepDifferences {
  double first_loss = 0;           ///< of the first step: of the same weights
  double first_gradient_norm = 0;  ///< likewise
  double later_loss = 0;           ///< of the steps behind it
};

/// Of the steps that all runs have. Errors: SpecError scaling_c2 where the samples of a step differ.
StepDifferences step_differences(const std::vector<record::Run>& runs);

/// Most of them where `dtype` computes a first step of `tokens` tokens: scaling_c2. Infinite where nothing
/// bounds them.
StepDifferences most_differences(Dtype dtype, double tokens);
/// A number that is none does not agree, whatever the bound.
bool agree(const StepDifferences& found, const StepDifferences& most);

}  // namespace assay::spec::metrics
