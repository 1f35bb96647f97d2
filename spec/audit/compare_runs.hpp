#pragma once
// Several runs read together: one trainer prints all its logs in one way, and equal work on equal GPUs takes
// about equal time. Which differences in speed are real, which are accounting.
#include <string>
#include <vector>

#include "spec/audit/hypotheses.hpp"

namespace assay::spec::audit {

/// One run beside the first.
struct SpeedDifference {
  std::size_t first = 0, second = 0;   ///< indices of audits
  std::optional<double> printed;       ///< printed tokens/s, second / first
  std::optional<double> printed_mfu;   ///< likewise
  std::optional<double> all, per_gpu;  ///< corrected tokens/s, second / first
  std::optional<double> mfu_exact;     ///< corrected, `exact` over the dense peak, second / first
  bool same_work = false;              ///< same model, GPU, micro-batch and sequence length
  std::string each;                    ///< what per_gpu is per: "per GPU"; of CPUs "per rank"
  std::string verdict;                 ///< one sentence
};

struct Together {
  std::vector<Audit> audits;                 ///< readings reordered: the ones that fit together first
  std::vector<std::string> settled;          ///< what only the comparison decides
  std::vector<SpeedDifference> differences;  ///< of runs; several starts of a run are one
  std::vector<Result> results;               ///< the invariant `scaling`
};

/// Audits every record; of several, readings are chosen together. `records` must outlive the result.
Together audit(const std::vector<RunRecord>& records);

}  // namespace assay::spec::audit
