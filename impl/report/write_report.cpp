#include "impl/report/write_report.hpp"

#include <algorithm>
#include <exception>
#include <sstream>
#include <utility>

#include "impl/checkpoint/folder.hpp"
#include "impl/machine/output_folder.hpp"
#include "impl/report/csv.hpp"
#include "impl/report/page.hpp"
#include "spec/audit/invariants.hpp"
#include "spec/audit/readers/read_log.hpp"
#include "spec/error.hpp"
#include "spec/record/read_run.hpp"

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
  names.reserve(runs.size());
  std::error_code error;
  for (const std::string& run : runs)
    names.push_back(fs::absolute(folder_of(run), error).filename().string());
  const std::vector<std::string> short_names = names;
  for (std::size_t i = 0; i < runs.size(); ++i)
    if (std::count(short_names.begin(), short_names.end(), short_names[i]) > 1) names[i] = runs[i];
  return names;
}

/// A run's own page stands in its folder. A comparison is no single run's, so it goes where it was asked for.
fs::path default_file(const std::vector<std::string>& runs, Form form) {
  const std::string ending = form == Form::csv ? ".csv" : ".html";
  return runs.size() > 1 ? fs::path("compare" + ending) : folder_of(runs[0]) / ("report" + ending);
}

/// What the steps of a record say against its being one run's.
std::vector<std::string> faults_of(const std::string& run, const spec::record::ReadRun& read) {
  std::vector<std::string> faults = read.discontinuities;
  if (read.around_resumes.empty()) return faults;
  // Losses and rates that do not go on from before a resume.
  std::istringstream lines(read.around_resumes);
  for (const spec::audit::RunRecord& record : spec::audit::read_logs(lines, run)) {
    const spec::audit::Result result = spec::audit::judge("resume", record);
    if (result.verdict == spec::audit::Verdict::contradicts) faults.push_back(result.note);
  }
  return faults;
}

}  // namespace

Written write_report(const std::vector<std::string>& runs, const std::string& output,
                     const std::string& first, Form form) {
  Written written;
  std::vector<NamedRun> named;
  const std::vector<std::string> names = names_of(runs);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    spec::record::Tolerance tolerance{.places = checkpoint::places_in_record(folder_of(runs[i])),
                                      .damage = {}};
    spec::record::ReadRun read = spec::record::read_run(runs[i], tolerance);
    named.push_back({.name = names[i], .run = {}, .damage = tolerance.damage.sentences()});
    // What else is wrong may follow from that.
    if (named.back().damage.empty()) named.back().faults = faults_of(runs[i], read);
    // Rows are of all steps.
    if (form == Form::csv && read.run.thinned)
      read.run = spec::record::assemble(spec::record::read_events(runs[i], &tolerance));
    named.back().run = std::move(read.run);
    try {
      named.back().waterfall = read_waterfall(folder_of(runs[i]));
    } catch (const std::exception& error) {
      named.back().faults.push_back(std::string("the picture of a step is left out: ") + error.what());
    }
    for (const std::string& each : named.back().damage) written.faults.push_back(each);
    for (const std::string& fault : named.back().faults) written.faults.push_back(runs[i] + ": " + fault);
  }
  written.file = output.empty() ? default_file(runs, form) : fs::path(output);
  std::string text = form == Form::csv ? csv(named) : page(named, first);
  if (output == "-") {
    written.text = std::move(text);
    return written;
  }
  try {
    if (output.empty())
      replace_file(OutputFolder(written.file.parent_path()), written.file.filename().string(), text);
    else
      write_output(written.file, text);
  } catch (const UserError& error) {
    throw UserError(error.code(), std::string(error.what()) + "; or give another path with -o");
  }
  return written;
}

}  // namespace assay::impl::report
