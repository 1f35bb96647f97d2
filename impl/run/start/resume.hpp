#pragma once
// The checkpoint that a run continues from, and what may differ from the run that saved it.
#include <optional>
#include <string>
#include <vector>

#include "impl/checkpoint/checkpoint.hpp"
#include "impl/checkpoint/newest_whole.hpp"
#include "impl/run/start/resume_request.hpp"
#include "spec/config/run_config.hpp"
#include "spec/record/event.hpp"

namespace assay::impl::run {

/// The checkpoint to continue from: checkpoint.resume's path, the newest whole one of the run folder that it
/// names, or that of run.directory for `auto`; no path when the run starts anew. `known`: checkpoints that
/// turned out to be damaged. Errors: UserError(bad_data) for a path without a whole checkpoint, or where all
/// of run.directory's are damaged; UserError(usage) when run.directory holds checkpoints beyond the one that
/// a path names: retention keeps the highest steps and a step that is there is not written again, so what the
/// run saves behind them would be lost.
checkpoint::NewestWhole find_resume(const spec::RunConfig& config,
                                    const std::vector<checkpoint::PassedOver>& known = {});

/// Its path alone, empty when the run starts anew.
std::string resume_path(const spec::RunConfig& config);

/// What a resumed run does otherwise than the run that it continues.
struct ResumeChanges {
  bool extended = false;                               ///< a complete run is given more steps
  std::vector<spec::record::ChangedSetting> settings;  ///< those that the record names
  /// Where batch.sequences was asked to change: as it was up to the checkpoint's step, then as it is asked.
  std::optional<spec::GlobalBatch> batch = {};
};

/// A resumed run must be the same run: what differs from the checkpoint `path`, of state `then`, may change
/// no result by more than its rounding (spec/checkpoint/checkpoint.md, "Resuming"), unless its name stands in
/// the request's changes. `data`: what the files of data.paths hold; they may have moved. Errors:
/// UserError(usage) naming every setting (model, batch, data, optimizer, schedule, seed, dtype) that must not
/// differ and does, with both values; those of model and types whether asked for or not. One exception: a
/// complete run may be given more steps, and with them another schedule.
ResumeChanges refuse_other_settings(const Request& request, const std::vector<checkpoint::DataFile>& data,
                                    const checkpoint::State& then, const std::string& path);

/// Where a run goes on.
struct ResumePoint {
  std::string path;         ///< of the checkpoint
  checkpoint::State state;  ///< what it says of its run
  ResumeChanges changes;
  std::vector<checkpoint::PassedOver> passed_over;  ///< damaged checkpoints that are newer
  /// A run of its own folder whose record does not end with `done` still has its end to do: the last
  /// validation, samples.
  bool end_is_done = true;
};

/// Nothing where the run starts anew. `data`: as refuse_other_settings; `known`: as find_resume. Errors:
/// those of find_resume, checkpoint::read_state and refuse_other_settings.
std::optional<ResumePoint> resume_point(const Request& request, const std::vector<checkpoint::DataFile>& data,
                                        const std::vector<checkpoint::PassedOver>& known = {});

}  // namespace assay::impl::run
