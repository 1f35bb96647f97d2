#pragma once
// Reports as files.
#include <filesystem>
#include <string>
#include <vector>

namespace assay::impl::report {

/// A report that was written, and what is wrong with the records that it shows.
struct Written {
  std::filesystem::path file;  ///< "-": none was, and `text` is the report
  std::string text;
  std::vector<std::string> faults;  ///< "runs/a: step 3 is missing", one line each; on the page too
};

/// How the runs are written down.
enum class Form { page, csv };

/// Reads the records of `runs` (folders or run.jsonl files) and writes their report to `output`; when that is
/// empty, that of one run to report.html (report.csv) beside its record, and that of several to compare.html
/// (compare.csv) in the current folder; "-" gives it back. Each record is held to its chain, to what one run
/// writes (steps in order, spec/record/continuity.hpp) and to the invariant `resume` of spec/audit. Errors:
/// as spec::record::read_events; UserError(io) when the page cannot be written.
Written write_report(const std::vector<std::string>& runs, const std::string& output,
                     const std::string& first = "", Form form = Form::page);

}  // namespace assay::impl::report
