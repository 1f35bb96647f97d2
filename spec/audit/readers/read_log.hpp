#pragma once
// A training log of any known trainer as RunRecords. The format is recognised by what the log says, not by
// its name. Formats, and where each was read: spec/audit/readers/formats.md.
#include <cstddef>
#include <functional>
#include <istream>
#include <string>
#include <vector>

#include "spec/audit/run_record.hpp"
#include "spec/record/lines.hpp"

namespace assay::spec::audit {

/// Sees every step in the order of the log, before any is thinned out; `so_far` holds what was read until
/// then, its steps excepted. True: the step contradicts something and is kept.
using StepCheck = std::function<bool(const RunRecord& so_far, const Step& step)>;

struct ReadOptions {
  /// What the columns of a CSV file or the keys of JSON lines mean: "step=iter,seconds=time_ms:ms,mfu=mfu:%",
  /// that is FIELD=COLUMN[:UNIT] with the fields of run_record.hpp. Units: s ms us ns min h, % , k M G T P,
  /// B kB MB GB TB KiB MiB GiB TiB. Nested keys are written with dots ("train.loss").
  std::string map;
  /// What the log does not hold: "gpus=8,gpu=NVIDIA B200,peak_flops=2.25e15", that is SETTING=VALUE with the
  /// settings of run_record.hpp, or model, gpu, dtype, schedule. It replaces what the log says.
  std::string set;
  StepCheck step_check;
  /// Of a log too long to keep every step, also keeps those that contradict by themselves: a number that
  /// falls back, a time or rate below 0 or infinite, a loss that is below 0 or not finite, an MFU above 1.
  /// Quicker than a step_check that does the same.
  bool keep_odd_steps = false;
  /// Likewise those whose numbers do not stand to one another as the first steps' do, with the line before
  /// and the one behind (line_watch.hpp): RunRecord::steps_apart.
  bool keep_steps_apart = false;
  /// Places that our own record must hold, as its run's checkpoints state them: one that it does not hold
  /// contradicts `chain`.
  std::vector<record::StatedPlace> places = {};
  /// Told of the place [bytes] that the steps of a long log are put in, before they are: a program may have
  /// the system take it in large pages, for its many small ones cost as long as a good part of the reading.
  void (*written_soon)(void* start, std::size_t bytes) = nullptr;
};

/// Every run in a file, in its order; fragments of one run (a report that quotes it twice) are put together.
/// A folder is read as its run.jsonl. Reads in constant memory; logs of any size.
/// Errors, each one line that says what, where, why and what to do next: UserError(usage) when there is no
/// such file, the stream was read before, or `map` or `set` cannot be understood; UserError(bad_data) when
/// the file cannot be opened or read, is empty, not text, cut in the middle of a JSON document, or no line is
/// one of a known trainer.
std::vector<RunRecord> read_logs(const std::string& path, const ReadOptions& options = {});
std::vector<RunRecord> read_logs(std::istream& in, const std::string& origin,
                                 const ReadOptions& options = {});

/// The same for a log of one run. Errors: also UserError(usage) when it holds several.
RunRecord read_log(const std::string& path, const ReadOptions& options = {});
RunRecord read_log(std::istream& in, const std::string& origin, const ReadOptions& options = {});

}  // namespace assay::spec::audit
