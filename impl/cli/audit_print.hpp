#pragma once
// The screen, the JSON and the JUnit file of `assay audit`.
#include <ostream>
#include <string>

#include "spec/audit/compare_runs.hpp"

namespace assay::impl::cli {

/// One screen: per run the verdict, what contradicts and why, the corrected numbers; then the comparison.
void print_screen(const spec::audit::Together& together, std::ostream& out);

/// One object: runs with results, readings and corrected numbers; the comparison.
void print_json(const spec::audit::Together& together, std::ostream& out);

/// JUnit XML as CI systems read it: a suite per run, a case per invariant; what contradicts fails, what
/// cannot be judged is skipped.
std::string junit(const spec::audit::Together& together);
/// The report of a log that cannot be read: one test case, `readable`, with an error.
std::string junit_of_unreadable(const std::string& origin, const std::string& why);

}  // namespace assay::impl::cli
