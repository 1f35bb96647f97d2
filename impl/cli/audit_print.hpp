#pragma once
// The screen, the JSON and the JUnit file of `assay audit`.
#include <ostream>
#include <string>
#include <vector>

#include "spec/audit/compare_runs.hpp"

namespace assay::impl::cli {

/// One screen: per run the verdict, what contradicts and why, the corrected numbers; then the comparison.
void print_screen(const spec::audit::Together& together, std::ostream& out);

/// What replaced or filled in the log's own words, where a contradiction may be that of such an option.
void print_given(const spec::audit::Together& together, std::ostream& out);

/// A log that cannot be read, beside others.
struct Unreadable {
  std::string origin, why;
};

/// One object: runs with results, readings and corrected numbers; the comparison; logs that cannot be read.
void print_json(const spec::audit::Together& together, const std::vector<Unreadable>& unreadable,
                std::ostream& out);

/// JUnit XML as CI systems read it: a suite per run, a case per invariant; what contradicts fails, what
/// cannot be judged is skipped. A log that cannot be read is a suite of one case, `readable`, with an error.
std::string junit(const spec::audit::Together& together, const std::vector<Unreadable>& unreadable);

}  // namespace assay::impl::cli
