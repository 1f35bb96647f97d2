#include "impl/report/write_report.hpp"

#include <algorithm>
#include <exception>
#include <string_view>

#include "impl/machine/output_folder.hpp"
#include "impl/report/csv.hpp"
#include "impl/report/page.hpp"
#include "spec/audit/invariants.hpp"
#include "spec/audit/readers/read_log.hpp"
#include "spec/error.hpp"
#include "spec/record/continuity.hpp"
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
std::vector<std::string> faults_of(const std::string& run, const std::vector<spec::record::Event>& events) {
  std::vector<std::string> faults = spec::record::discontinuities(events);
  // Counted tokens, losses and rates across a restart; the steps themselves where the above is content.
  for (const spec::audit::RunRecord& record : spec::audit::read_logs(run))
    for (const char* invariant : {"steps", "resume"}) {
      const spec::audit::Result result = spec::audit::judge(invariant, record);
      const bool named = invariant == std::string_view("steps") && !faults.empty();
      if (result.verdict == spec::audit::Verdict::contradicts && !named) faults.push_back(result.note);
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
    const std::vector<spec::record::Event> events = spec::record::read_events(runs[i]);
    named.push_back({names[i], spec::record::assemble(events), faults_of(runs[i], events)});
    try {
      named.back().waterfall = read_waterfall(folder_of(runs[i]));
    } catch (const std::exception& error) {
      named.back().faults.push_back(std::string("the picture of a step is left out: ") + error.what());
    }
    for (const std::string& fault : named.back().faults) written.faults.push_back(runs[i] + ": " + fault);
  }
  written.file = output.empty() ? default_file(runs, form) : fs::path(output);
  const std::string text = form == Form::csv ? csv(named) : page(named, first);
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
