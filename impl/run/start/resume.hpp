#pragma once
// The checkpoint that a run continues from, and what may differ from the run that saved it.
#include <optional>
#include <string>
#include <vector>

#include "impl/checkpoint/checkpoint.hpp"
#include "impl/checkpoint/newest_whole.hpp"
#include "impl/run/start/resume_request.hpp"
#include "spec/config/run_config.hpp"
#include "spec/model/differences.hpp"
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

/// What a run is besides its settings, by content.
struct Identity {
  std::optional<spec::ModelSpec> model;     ///< nothing of a run that an early version saved
  std::vector<checkpoint::DataFile> files;  ///< what it reads, or began from
};

/// What a resumed run does otherwise than the run that it continues.
struct ResumeChanges {
  bool extended = false;                               ///< a complete run is given more steps
  std::vector<spec::record::ChangedSetting> settings;  ///< those that the record names
  /// Where batch.sequences was asked to change: as it was up to the checkpoint's step, then as it is asked.
  std::optional<spec::GlobalBatch> batch = {};
};

/// A resumed run must be the same run: what differs from the checkpoint `path`, of state `then`, may change
/// no result by more than its rounding (Key::on_resume; spec/checkpoint/checkpoint.md, "Resuming"), unless
/// its name stands in the request's changes. Files, model and weights are compared by content: they may have
/// moved. Errors: UserError(usage) naming everything that must not differ and does, with both values; what
/// weights and moments are of whether asked for or not.
ResumeChanges refuse_other_settings(const Request& request, const Identity& now,
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

  /// The settings of the run that saved it. Errors: UserError(bad_data).
  spec::RunConfig settings() const;
  std::optional<spec::ModelSpec> model() const;  ///< nothing of a run that an early version saved
};

/// Nothing where the run starts anew; its changes are not known yet. `known`: as find_resume. Errors: those
/// of find_resume and checkpoint::read_state.
std::optional<ResumePoint> resume_point(const Request& request,
                                        const std::vector<checkpoint::PassedOver>& known = {});

/// Finds out what differs; a run that is complete, of which nothing else is read, has a checkpoint before
/// `point` where that one is damaged. Errors: those of resume_point and refuse_other_settings.
void compare(const Request& request, const Identity& now, ResumePoint& point);

/// What files that the run can do without, or may change, hold otherwise than when it was saved: a line each.
std::vector<std::string> other_files(const Request& request, const Identity& now, const ResumePoint& point);

/// What the checkpoints of a run that goes on say of the files that it reads, or began from.
std::vector<checkpoint::DataFile> files_of_next(const Identity& now, const ResumePoint& point);

/// "rope_theta of model mine.toml is 20000.0, was 10000.0".
std::string difference_text(const spec::ModelDifference& difference, const std::string& model);

}  // namespace assay::impl::run
