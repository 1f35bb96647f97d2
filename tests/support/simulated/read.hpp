#pragma once
// The log of a simulated run, read as `assay audit` reads it.
#include <sstream>
#include <string>

#include "spec/audit/readers/read_log.hpp"
#include "tests/support/simulated/run.hpp"

namespace assay::tests {

/// `text` is a log of `run`, whole or not. `also_set`, as --set gives it, is stated beside the run's own
/// arguments (read_arguments) and replaces those that it names. Errors: UserError, as spec::audit::read_log.
inline spec::audit::RunRecord record_of(const SimulatedRun& run, const std::string& text,
                                        const std::string& also_set = "") {
  const ReadArguments arguments = read_arguments(run);
  spec::audit::ReadOptions options;
  options.map = arguments.map;
  // What is stated beside them replaces the run's own arguments: nothing may be given twice.
  std::istringstream own(arguments.set);
  options.set = also_set;
  for (std::string part; std::getline(own, part, ',');)
    if (("," + also_set).find("," + part.substr(0, part.find('=') + 1)) == std::string::npos)
      options.set += (options.set.empty() ? "" : ",") + part;
  std::istringstream in(text);
  return read_log(in, std::string(to_string(run.format)), options);
}

}  // namespace assay::tests
