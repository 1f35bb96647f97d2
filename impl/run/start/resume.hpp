#pragma once
// The checkpoint that a run continues from, and what may differ from the run that saved it.
#include <optional>
#include <string>
#include <vector>

#include "impl/checkpoint/checkpoint.hpp"
#include "spec/config/run_config.hpp"
#include "spec/record/event.hpp"

namespace assay::impl::run {

/// The checkpoint to continue from: checkpoint.resume's path, or the newest of run.directory for `auto`.
/// Empty when the run starts anew. Errors: UserError(bad_data) for a path without a checkpoint;
/// UserError(usage) when run.directory holds checkpoints beyond that path's: retention keeps the highest
/// steps and a step that is there is not written again, so what the run saves behind them would be lost.
std::string resume_path(const spec::RunConfig& config);

/// What a resumed run does otherwise than the run that it continues.
struct ResumeChanges {
  bool extended = false;                               ///< a complete run is given more steps
  std::vector<spec::record::ChangedSetting> settings;  ///< those that the record names
};

/// A resumed run must be the same run: what differs from the checkpoint `path`, of state `then`, may change
/// no result by more than its rounding (spec/checkpoint/checkpoint.md, "Resuming"). `data`: what the files of
/// config.data_paths hold; they may have moved. Errors: UserError(usage) naming every setting (model, batch,
/// data, optimizer, schedule, seed, dtype) that must not differ and does, with both values. One exception: a
/// complete run may be given more steps, and with them another schedule.
ResumeChanges refuse_other_settings(const spec::RunConfig& config,
                                    const std::vector<checkpoint::DataFile>& data,
                                    const checkpoint::State& then, const std::string& path);

/// Where a run goes on.
struct ResumePoint {
  std::string path;         ///< of the checkpoint
  checkpoint::State state;  ///< what it says of its run
  ResumeChanges changes;
};

/// Nothing where the run starts anew. `data`: as refuse_other_settings. Errors: those of resume_path,
/// checkpoint::read_state and refuse_other_settings.
std::optional<ResumePoint> resume_point(const spec::RunConfig& config,
                                        const std::vector<checkpoint::DataFile>& data);

}  // namespace assay::impl::run
