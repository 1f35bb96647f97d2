#pragma once
// A step's time from peak to achieved MFU. Bars, constraints and worked example: spec/time/waterfall.md.
#include <optional>
#include <string>
#include <vector>

#include "spec/time/step_ops.hpp"

namespace assay::spec::time {

/// Time of all calls of one op and pass in a step.
struct MeasuredPart {
  StepOp op;
  StepPass pass;
  double calls = 0;
  double seconds = 0;
};

/// One step, measured: as a whole, and by parts and what lies between them.
struct MeasuredStep {
  double seconds = 0;  ///< as a whole, by a clock of its own
  std::vector<MeasuredPart> parts;
  double between = 0;    ///< in no part, data included [s]
  double data_wait = 0;  ///< of that, waiting for data [s]
};

/// What the model needs in a step by `exact` (spec/flops/exact.md), and at what rate it could be done.
struct NeededFlops {
  double gemms = 0, attention = 0;  ///< [flop]
  double peak = 0;                  ///< dense [flop/s]; 0: not known
};

struct WaterfallBar {
  std::string name;
  double seconds = 0;
};

struct Waterfall {
  std::optional<double> mfu;       ///< by `exact`; nothing without a peak. Share of 1
  std::vector<WaterfallBar> bars;  ///< add up to the step
};

/// The largest part of the step by which its parts may miss it.
inline constexpr double waterfall_tolerance = 0.01;

/// Errors: SpecError waterfall_c1 (parts and between miss the step by more than 1 %), waterfall_c2 (a time is
/// negative or not finite, a step without time), waterfall_c3 (faster than the peak allows).
Waterfall waterfall(const MeasuredStep& step, const NeededFlops& needed);

/// Checks C1 for bars or parts that were read from a file. Errors: SpecError waterfall_c1, waterfall_c2.
void check_sum(double step_seconds, const std::vector<double>& parts);

}  // namespace assay::spec::time
