#include "spec/audit/readers/read_log.hpp"

#include <filesystem>
#include <fstream>

#include "spec/audit/readers/doubled_lines.hpp"
#include "spec/audit/readers/log_shape.hpp"
#include "spec/audit/readers/mapping.hpp"
#include "spec/audit/readers/null_losses.hpp"
#include "spec/audit/readers/read_document.hpp"
#include "spec/audit/readers/read_lines.hpp"
#include "spec/audit/readers/stated_settings.hpp"
#include "spec/audit/readers/unnumbered_steps.hpp"
#include "spec/error.hpp"

namespace assay::spec::audit {

std::vector<RunRecord> read_logs(std::istream& in, const std::string& origin, const ReadOptions& options) {
  const Mapping mapping(options.map);
  check_settings(options.set);
  Blocks blocks(in, origin);
  if (!blocks.more() || blocks.rest().find_first_not_of(" \t\r\n") == std::string_view::npos)
    throw UserError(ExitCode::bad_data, origin + ": is empty; give the log that the trainer printed");
  check_text(blocks.rest(), origin);
  const LogShape shape = shape_of(blocks.rest());
  std::vector<RunRecord> runs = shape == LogShape::document ? read_document(blocks, options, mapping)
                                                            : read_lines(blocks, options, mapping, shape);
  for (RunRecord& run : runs) {
    run.mapped = mapping.given();
    apply_settings(run, options.set);
    merge_doubled_lines(run);
    number_steps(run);
    settle_null_losses(run);
    if (run.ranks == 1) run.steps_of_rank = run.steps_seen;
  }
  return runs;
}

std::vector<RunRecord> read_logs(const std::string& path, const ReadOptions& options) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  const auto usage = [&](const std::string& message) -> std::vector<RunRecord> {
    throw UserError(ExitCode::usage, path + ": " + message);
  };
  if (!std::filesystem::exists(status))
    return usage("no such file; give a log, or a folder with a run.jsonl");
  if (std::filesystem::is_directory(status)) {
    const std::string inside = (std::filesystem::path(path) / "run.jsonl").string();
    if (!std::filesystem::exists(inside, error))
      return usage("is a folder without a run.jsonl; give the log itself");
    return read_logs(inside, options);
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) throw UserError(ExitCode::io, path + ": cannot be opened for reading; check its permissions");
  return read_logs(file, path, options);
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
