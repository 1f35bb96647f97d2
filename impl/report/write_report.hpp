#pragma once
// Reports as files.
#include <filesystem>
#include <string>
#include <vector>

namespace assay::impl::report {

/// Reads the records of `runs` (folders or run.jsonl files) and writes their report to `output`; when that is
/// empty, to report.html beside the first record. Returns the path written. Errors: as
/// spec::record::read_events; UserError(io) when the page cannot be written.
std::filesystem::path write_report(const std::vector<std::string>& runs, const std::string& output);

}  // namespace assay::impl::report
