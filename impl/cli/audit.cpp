#include <algorithm>
#include <filesystem>
#include <iostream>
#include <optional>
#include <sstream>
#include <utility>

#include "impl/checkpoint/folder.hpp"
#include "impl/cli/audit_print.hpp"
#include "impl/cli/doctor/huge_pages.hpp"
#include "impl/cli/verb.hpp"
#include "impl/machine/output_folder.hpp"
#include "spec/audit/readers/option_words.hpp"
#include "spec/audit/readers/read_log.hpp"
#include "spec/error.hpp"
#include "spec/text/labels.hpp"
#include "spec/text/nearest.hpp"
#include "spec/text/quote.hpp"

namespace assay::impl::cli {
namespace {

using namespace spec::audit;  // NOLINT: this file speaks of nothing else

int explain(const std::string& id, std::ostream& out) {
  std::vector<std::string> known;
  for (const Invariant& invariant : invariants()) {
    if (invariant.id == id || id == "all") {
      out << invariant.id << "\n  " << invariant.statement << "\n  " << invariant.explains << "\n";
      if (id != "all") return 0;
    }
    known.emplace_back(invariant.id);
  }
  if (id == "all") return 0;
  const auto guess = spec::nearest(id, known);
  throw UserError(ExitCode::usage, "no invariant is called " + spec::quote(id) +
                                       (guess ? "; did you mean \"" + *guess + "\"?" : ";") +
                                       " `assay audit --explain all` explains each");
}

/// Whether a row of a table whose cells no comma separates writes its decimals with one: "1;11,45;994,76".
bool decimal_commas(const std::string& text) {
  if (text.find_first_of(";\t") == std::string::npos) return false;
  const auto digit = [&](std::size_t i) { return i < text.size() && text[i] >= '0' && text[i] <= '9'; };
  for (std::size_t at = text.find(','); at != std::string::npos; at = text.find(',', at + 1)) {
    std::size_t behind = 0;
    while (digit(at + 1 + behind)) ++behind;
    if (at > 0 && digit(at - 1) && behind > 0 && behind != 3) return true;
  }
  return false;
}

bool judged_summary(const RunRecord& run) {
  const std::vector<Result> results = judge(run);
  return std::any_of(results.begin(), results.end(), [](const Result& r) {
    const bool of_steps =
        r.id.starts_with("average_") || r.id.starts_with("total_") || r.verdict == Verdict::contradicts;
    return of_steps && r.verdict != Verdict::cannot_be_judged;
  });
}

/// A log without steps, which says nothing wrong and sums none up, has nothing that an exit of 0 could mean.
void refuse_without_steps(const std::vector<RunRecord>& runs, const std::string& path) {
  std::int64_t lines = 0;
  for (const RunRecord& run : runs) {
    if (run.steps_seen > 0 || judged_summary(run)) return;
    lines = std::max(lines, run.lines);
  }
  throw UserError(ExitCode::bad_data, path + ": holds no step in " + std::to_string(lines) +
                                          (lines == 1 ? " line" : " lines") +
                                          ", and no summary of any, so nothing of it can be judged; did the "
                                          "run end before its first step, or is a column not mapped?");
}

/// A log of step lines none of which can be read has nothing to judge.
void refuse_unreadable(const std::vector<RunRecord>& runs, const std::string& path) {
  std::int64_t unread = 0;
  for (const RunRecord& run : runs) {
    if (run.steps_seen > 0) return;
    unread += run.unread_lines;
  }
  if (unread == 0 || runs.empty()) return;
  const auto& quotes = runs.front().unread_quotes;
  throw UserError(ExitCode::bad_data,
                  path + ": none of its step lines can be read" +
                      (!quotes.empty() && decimal_commas(quotes[0].text)
                           ? ", whose decimals are written with a comma where a point is read"
                           : "") +
                      (quotes.empty() ? ""
                                      : "; the first, line " + std::to_string(quotes[0].line) + ", is " +
                                            spec::quote(quotes[0].text)) +
                      "; give the log as its trainer wrote it");
}

/// An option of its own and --set may not state the same.
void refuse_stated_twice(const Arguments& arguments) {
  constexpr std::pair<const char*, const char*> same[] = {
      {"model", "model"}, {"gpu", "gpu"}, {"gpus", "gpus"}, {"seq", "sequence_length"}};
  for (const auto& [name, value] : spec::audit::option_pairs("--set", arguments.value("set", "")))
    for (const auto& [option, setting] : same)
      if (name == setting && arguments.has(option) && arguments.value(option, "") != value)
        throw UserError(ExitCode::usage, std::string("--") + option + " " + arguments.value(option, "") +
                                             " and --set " + name + "=" + value +
                                             " state the same of the log differently; give one of them");
}

/// What the command line says replaces what the log says.
void given(const Arguments& arguments, RunRecord& record) {
  const auto option = [&](const std::string& name) { return "--" + name + " " + arguments.value(name, ""); };
  const auto number = [&](const std::string& name) {
    return exactly(static_cast<double>(arguments.positive(name, 1)));
  };
  if (arguments.has("model")) {
    const auto& length = record[Setting::sequence_length];
    const auto asked = arguments.has("seq") ? std::optional(arguments.positive("seq", 1))
                       : length && length->value >= 1 && length->value < 1e12
                           ? std::optional(static_cast<std::int64_t>(length->value))
                           : std::nullopt;
    spec::find_model(arguments.value("model", ""), asked);
    record.state("model", &RunRecord::model, arguments.value("model", ""), option("model"));
  }
  if (arguments.has("gpu")) {
    spec::named_gpu(arguments.value("gpu", ""));
    record.state("gpu", &RunRecord::gpu, arguments.value("gpu", ""), option("gpu"));
    record.device.clear();
  }
  if (arguments.has("gpus")) record.state(Setting::gpus, number("gpus"), option("gpus"));
  if (arguments.has("seq")) record.state(Setting::sequence_length, number("seq"), option("seq"));
}

/// "-" is standard output.
void write_junit(const std::string& path, const std::string& xml, std::ostream& out) {
  if (path == "-") {
    out << xml;
    return;
  }
  write_output(path, xml);
}

/// The report may be no file that is read, by whatever path it is named.
void refuse_overwriting(const Arguments& arguments) {
  if (!arguments.has("junit")) return;
  const std::string report = arguments.value("junit", "");
  if (report == "-" && arguments.has("json"))
    throw UserError(ExitCode::usage,
                    "--junit - and --json both write to standard output; give --junit a file");
  if (report == "-") return;
  std::vector<std::string> read = arguments.positional;
  if (arguments.has("model")) read.push_back(arguments.value("model", ""));
  for (const std::string& path : read) {
    std::error_code error;
    const std::filesystem::path file = path == "-" ? "/dev/stdin" : path;
    for (const std::filesystem::path& one : {file, file / "run.jsonl", file / "config.json"})
      if (std::filesystem::is_regular_file(one, error) && std::filesystem::equivalent(one, report, error))
        throw UserError(ExitCode::usage, "--junit " + spec::quote(report) +
                                             " would overwrite a file that is read; name another");
  }
}

/// The run's folder that holds the record `path`, where it is one by its name: its checkpoints say what the
/// record must hold.
std::vector<spec::record::StatedPlace> places_of(const std::filesystem::path& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return checkpoint::places_in_record(path);
  if (path.filename() != "run.jsonl") return {};
  return checkpoint::places_in_record(path.parent_path());
}

/// Every run of one log, completed by the command line.
std::vector<RunRecord> runs_of(const std::string& path, const Arguments& arguments) {
  ReadOptions options;
  options.map = arguments.value("map", "");
  options.set = arguments.value("set", "");
  options.keep_odd_steps = true;
  options.keep_steps_apart = true;
  options.written_soon = prefer_huge_pages;
  options.places = places_of(path);  // before the record, which may still grow
  std::vector<RunRecord> runs =
      path == "-" ? read_logs(std::cin, "standard input", options) : read_logs(path, options);
  refuse_unreadable(runs, path);
  for (RunRecord& record : runs) given(arguments, record);
  refuse_without_steps(runs, path);
  return runs;
}

}  // namespace

void audit_refused(const Arguments& clear, const std::string& why, Streams streams) {
  if (!clear.has("junit")) return;
  try {
    refuse_overwriting(clear);
    write_junit(clear.value("junit", ""), junit({}, {{"command line", why}}), streams.out);
  } catch (const UserError&) {
    // The fault of the command line is reported; that the report cannot be written either need not be.
  }
}

int audit(const Arguments& arguments, Streams streams) {
  if (arguments.has("explain") && !arguments.positional.empty())
    throw UserError(ExitCode::usage, "--explain reads no log, and would leave out " +
                                         spec::quote(arguments.positional.front()) + "; give it alone");
  if (arguments.has("explain")) return explain(arguments.value("explain", ""), streams.out);
  if (arguments.positional.empty()) {
    const std::string none = "`assay audit` takes one LOG or more, as in `assay audit train.log`";
    audit_refused(arguments, none, streams);
    throw UserError(ExitCode::usage, none);
  }
  refuse_overwriting(arguments);
  refuse_stated_twice(arguments);
  std::vector<RunRecord> records;
  std::vector<Unreadable> unreadable;
  std::optional<UserError> first;
  std::string reading = arguments.positional.front();
  try {
    refuse_repeats(arguments.positional);
    for (const std::string& path : arguments.positional) try {
        for (RunRecord& record : runs_of(reading = path, arguments)) records.push_back(std::move(record));
      } catch (const UserError& error) {
        // What the command line says of all of them is no fault of one.
        if (error.code() == ExitCode::usage) throw;
        unreadable.push_back({path, error.what()});
        if (!first) first = error;
      }
  } catch (const UserError& error) {
    // A report that is not there, or an older one, reads as nothing wrong on some CI systems.
    if (arguments.has("junit"))
      write_junit(arguments.value("junit", ""), junit({}, {{reading, error.what()}}), streams.out);
    throw;
  }
  const Together together = records.empty() ? Together{} : spec::audit::audit(records);
  const bool report_only = arguments.value("junit", "") == "-";
  // Whole, or not at all: what is found wrong while it is put together leaves no half of it behind.
  std::ostringstream text;
  if (!records.empty() && arguments.has("json"))
    print_json(together, unreadable, text);
  else if (!records.empty() && !report_only)
    print_screen(together, text), print_given(together, text);
  if (arguments.has("junit"))
    write_junit(arguments.value("junit", ""), junit(together, unreadable), streams.out);
  streams.out << text.view();
  // The first is reported where errors are mapped to exit codes.
  for (std::size_t i = 1; i < unreadable.size(); ++i)
    streams.err << "assay: error: " << spec::without_labels(unreadable[i].why) << "\n";
  if (first) throw UserError(*first);
  bool contradicts = false;
  for (const Audit& one : together.audits) contradicts |= one.contradicts;
  for (const Result& result : together.results) contradicts |= result.verdict == Verdict::contradicts;
  return static_cast<int>(contradicts ? ExitCode::contradiction : ExitCode::done);
}

}  // namespace assay::impl::cli
