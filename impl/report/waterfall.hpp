#pragma once
// The section "Where the time goes": what `assay bench step --run FOLDER` has written beside the record.
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace assay::impl::report {

/// One op of the step.
struct TimedOp {
  std::string name;
  double seconds = 0;                    ///< of all its calls in a step
  std::optional<double> roofline_share;  ///< least time by peak and bandwidth over its time
};

/// A step taken apart (spec/time/waterfall.md).
struct StepPicture {
  struct Bar {
    std::string name;
    double seconds = 0;
  };
  std::string subject;  ///< "llama-1.36b, 24 x 2,048 tokens, bf16, NVIDIA H200"
  double step_seconds = 0;
  std::optional<double> mfu;  ///< nothing where the peak is not known
  std::vector<Bar> bars;
  std::vector<TimedOp> ops;  ///< longest first
};

/// Reads FOLDER/waterfall.json; nothing where there is none. Errors: UserError(bad_data) for a file that is
/// not what `assay bench step` writes; SpecError waterfall_c1 where its bars, or its ops with what lies
/// between them, do not add up to the step within 1 %.
std::optional<StepPicture> read_waterfall(const std::filesystem::path& folder);

/// The section, empty without a picture.
std::string where_the_time_goes(const std::optional<StepPicture>& picture);

}  // namespace assay::impl::report
