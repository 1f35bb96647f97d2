#pragma once
// Where a run writes, and what it continues.
#include <string>
#include <vector>

#include "impl/checkpoint/checkpoint.hpp"
#include "impl/comm/communicator.hpp"
#include "spec/config/run_config.hpp"
#include "spec/record/event.hpp"

namespace assay::impl::run {

/// The checkpoint to continue from: checkpoint.resume's path, or the newest of run.directory for `auto`.
/// Empty when the run starts anew. Errors: UserError(bad_data) for a path without a checkpoint;
/// UserError(usage) when run.directory holds checkpoints beyond that path's: retention keeps the highest
/// steps and a step that is there is not written again, so what the run saves behind them would be lost.
std::string resume_path(const spec::RunConfig& config);

/// The folder that this run writes to, created: run.directory itself when continuing or when it holds no run
/// yet, else the first free one of run.directory-2, -3, ...: another run is never written over, nor one that
/// starts at the same moment, since the empty record that is created claims the folder. Collective: rank 0
/// chooses. Errors: UserError(io).
std::string run_directory(const spec::RunConfig& config, Communicator& communicator);

/// What a user does after the run of `directory` was ended from outside: "go on with ..." and the settings
/// that find its last checkpoint, or, where none is committed, that it starts anew.
std::string way_to_go_on(const std::string& directory);

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

}  // namespace assay::impl::run
