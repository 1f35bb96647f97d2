#pragma once
// Mistakes of accounting, each put into the log of a simulated run. Tests of the audit look for their names.
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "tests/support/simulated/run.hpp"

namespace assay::tests {

/// A draw whose faulty numbers are also those of another fault: no log can tell the two apart, so it is not
/// drawn. Told in docs/measurements/audit-confusion.md.
struct Twin {
  std::string text;  ///< what the numbers are as well
  std::function<bool(const SimulatedRun& run, std::uint64_t seed)> same;
};

struct Fault {
  std::string id;                  ///< the cause that must be named
  std::string text;                ///< what was done to the log
  std::vector<LogFormat> formats;  ///< those that print what the fault touches
  /// Other names for the same numbers: no log can tell them apart.
  std::set<std::string> also;
  /// The faulty report of a truthful run; nothing when the run cannot show the fault (one GPU, one pass ...).
  std::function<std::optional<Report>(SimulatedRun& run, std::uint64_t seed)> inject;
  std::vector<Twin> twins = {};
};

const std::vector<Fault>& faults();

}  // namespace assay::tests
