#pragma once
// Logs put together of lines, read as whole steps or as text (ReadOptions::keep_odd_steps).
#include <sstream>
#include <string>
#include <vector>

#include "spec/audit/readers/read_log.hpp"
#include "tests/support/simulated/run.hpp"

namespace assay::tests {

inline std::string joined(const std::vector<std::string>& lines) {
  std::string out;
  for (const std::string& line : lines) out += line + "\n";
  return out;
}

/// `told` as --map and --set; `check` as ReadOptions::step_check. Errors: UserError, as
/// spec::audit::read_logs.
inline std::vector<spec::audit::RunRecord> read_lines(const std::string& log, const ReadArguments& told,
                                                      bool keep_odd = false,
                                                      const spec::audit::StepCheck& check = {}) {
  spec::audit::ReadOptions options;
  options.map = told.map;
  options.set = told.set;
  options.keep_odd_steps = keep_odd;
  options.step_check = check;
  std::istringstream in(log);
  return read_logs(in, "drawn", options);
}

}  // namespace assay::tests
