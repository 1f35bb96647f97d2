#pragma once
// A run out of a record of any length, in a memory that does not grow with it.
#include <string>
#include <vector>

#include "spec/record/read.hpp"
#include "spec/record/run.hpp"

namespace assay::spec::record {

struct ReadRun {
  Run run;  ///< as `assemble`, but for the steps of a long run (Run::thinned)
  std::vector<std::string> discontinuities;
  /// Lines of the record of a run that was resumed: all but for most steps, of which those around each resume
  /// are there.
  std::string around_resumes;
};

/// Reads the record twice, the first time to know which steps count: those that were not done again. Errors:
/// as read_events; UserError(io) also for a record that is not read again as it was.
ReadRun read_run(const std::string& file_or_folder, Tolerance& tolerance);

}  // namespace assay::spec::record
