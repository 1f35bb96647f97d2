#include "impl/report/write_report.hpp"

#include <algorithm>
#include <fstream>

#include "impl/report/page.hpp"
#include "spec/error.hpp"
#include "spec/record/read.hpp"

namespace assay::impl::report {
namespace {

namespace fs = std::filesystem;

/// The run's folder: "runs/a", "runs/a/" and "runs/a/run.jsonl" all give runs/a.
fs::path folder_of(const std::string& run) {
  fs::path path = fs::path(run).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  std::error_code unreadable;
  return fs::is_directory(path, unreadable) ? path : path.parent_path();
}

/// Names of the folders, or whole paths where two runs share a name.
std::vector<std::string> names_of(const std::vector<std::string>& runs) {
  std::vector<std::string> names;
  std::error_code error;
  for (const std::string& run : runs)
    names.push_back(fs::absolute(folder_of(run), error).filename().string());
  const std::vector<std::string> short_names = names;
  for (std::size_t i = 0; i < runs.size(); ++i)
    if (std::count(short_names.begin(), short_names.end(), short_names[i]) > 1) names[i] = runs[i];
  return names;
}

}  // namespace

fs::path write_report(const std::vector<std::string>& runs, const std::string& output) {
  std::vector<NamedRun> named;
  const std::vector<std::string> names = names_of(runs);
  for (std::size_t i = 0; i < runs.size(); ++i)
    named.push_back({names[i], spec::record::assemble(spec::record::read_events(runs[i]))});
  const fs::path file = output.empty() ? folder_of(runs[0]) / "report.html" : fs::path(output);
  std::ofstream out(file, std::ios::binary);
  out << page(named);
  out.close();
  if (!out)
    throw UserError(ExitCode::io,
                    file.string() + ": cannot write the report; free space, or give another path with -o");
  return file;
}

}  // namespace assay::impl::report
