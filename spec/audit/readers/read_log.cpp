#include "spec/audit/readers/read_log.hpp"

#include <filesystem>
#include <optional>
#include <system_error>

#include "spec/audit/readers/container_lines.hpp"
#include "spec/audit/readers/doubled_lines.hpp"
#include "spec/audit/readers/log_shape.hpp"
#include "spec/audit/readers/mapping.hpp"
#include "spec/audit/readers/null_losses.hpp"
#include "spec/audit/readers/plain_json.hpp"
#include "spec/audit/readers/read_document.hpp"
#include "spec/audit/readers/read_lines.hpp"
#include "spec/audit/readers/stated_settings.hpp"
#include "spec/audit/readers/unnumbered_steps.hpp"
#include "spec/audit/readers/whole_columns.hpp"
#include "spec/error.hpp"
#include "spec/text/file.hpp"
#include "spec/text/quote.hpp"

namespace assay::spec::audit {

namespace {

/// Each of these: `blocks` holds the first bytes.
std::vector<RunRecord> read_shape(Blocks& blocks, const ReadOptions& options, const Mapping& mapping) {
  const LogShape shape = shape_of(blocks.rest());
  return shape == LogShape::document ? read_document(blocks, options, mapping)
                                     : read_lines(blocks, options, mapping, shape);
}

/// A log's own words are shown again.
void make_names_printable(RunRecord& run) {
  for (std::string RunRecord::*name :
       {&RunRecord::model, &RunRecord::gpu, &RunRecord::device, &RunRecord::dtype, &RunRecord::linear,
        &RunRecord::linear_bf16_layers, &RunRecord::linear_experts, &RunRecord::schedule,
        &RunRecord::parallelism, &RunRecord::weights})
    run.*name = printable(run.*name);
}

std::vector<RunRecord> read_blocks(Blocks& blocks, const ReadOptions& options, const Mapping& mapping) {
  check_text(blocks.rest(), blocks.origin());
  if (odd_json(blocks.rest())) {
    PlainJson plain(blocks);
    std::istream inside(&plain);
    Blocks json(inside, blocks.origin());
    json.more();
    return read_shape(json, options, mapping);
  }
  return read_shape(blocks, options, mapping);
}

}  // namespace

std::vector<RunRecord> read_logs(std::istream& in, const std::string& origin, const ReadOptions& options) {
  const Mapping mapping(options.map);
  check_settings(options.set);
  if (in.eof()) throw UserError(ExitCode::usage, origin + ": was read to its end before; give each log once");
  Blocks blocks(in, origin);
  if (!blocks.more() || blocks.rest().find_first_not_of(" \t\r\n") == std::string_view::npos)
    throw UserError(ExitCode::bad_data, origin + ": is empty; give the log that the trainer printed");
  std::vector<RunRecord> runs;
  if (container_lines(blocks.rest())) {
    ContainerLines printed(blocks);
    std::istream inside(&printed);
    Blocks lines(inside, origin);
    lines.more();
    runs = read_blocks(lines, options, mapping);
  } else {
    runs = read_blocks(blocks, options, mapping);
  }
  for (RunRecord& run : runs) {
    make_names_printable(run);
    run.mapped = mapping.given();
    apply_settings(run, options.set);
    merge_doubled_lines(run);
    number_steps(run);
    settle_null_losses(run);
    widen_whole_columns(run);
    if (run.ranks == 1) run.steps_of_rank = run.steps_seen;
  }
  return runs;
}

std::vector<RunRecord> read_logs(const std::string& path, const ReadOptions& options) {
  const auto is_there = [](const std::string& name) {
    std::error_code error;
    const auto status = std::filesystem::status(name, error);
    if (std::filesystem::exists(status)) return true;
    // What is there and cannot be examined (a folder that is closed, links in a circle) is distinguished.
    if (!error || error == std::errc::no_such_file_or_directory || error == std::errc::not_a_directory ||
        error == std::errc::filename_too_long)
      return false;
    throw UserError(ExitCode::bad_data, name + ": cannot be looked at: " + error.message() +
                                            "; check its permissions and where its links lead");
  };
  if (!is_there(path))
    throw UserError(ExitCode::usage, path + ": no such file; give a log, or a folder with a run.jsonl");
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    const std::string inside = (std::filesystem::path(path) / "run.jsonl").string();
    if (!is_there(inside))
      throw UserError(ExitCode::usage, path + ": is a folder without a run.jsonl; give the log itself");
    if (std::filesystem::is_directory(inside, error))
      throw UserError(ExitCode::bad_data, inside + ": is a folder, not a record; give the log itself");
    return read_logs(inside, options);
  }
  std::optional<FileStream> file;
  try {
    file.emplace(path, Behind::stream);
  } catch (const FileFault& fault) {
    throw UserError(ExitCode::bad_data,
                    path + ": cannot be opened for reading: " + fault.why() + "; give the log itself");
  }
  return read_logs(*file, path, options);
}

namespace {

RunRecord the_only(std::vector<RunRecord> runs, const std::string& origin) {
  if (runs.size() > 1)
    throw UserError(ExitCode::usage, origin + ": holds " + std::to_string(runs.size()) +
                                         " runs; give a file with one, or have all of them compared");
  return std::move(runs.front());
}

}  // namespace

RunRecord read_log(const std::string& path, const ReadOptions& options) {
  return the_only(read_logs(path, options), path);
}

RunRecord read_log(std::istream& in, const std::string& origin, const ReadOptions& options) {
  return the_only(read_logs(in, origin, options), origin);
}

}  // namespace assay::spec::audit
