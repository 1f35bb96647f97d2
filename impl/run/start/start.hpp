#pragma once
// The start of a run, from its settings to its first step: one sequence, each part from those before it.
#include <memory>
#include <optional>
#include <vector>

#include "impl/data/sample_source.hpp"
#include "impl/data/validation_set.hpp"
#include "impl/run/start/memory_limits.hpp"
#include "impl/run/start/numerics.hpp"
#include "impl/run/start/on_ranks.hpp"
#include "impl/run/start/resume.hpp"
#include "spec/batch/batch.hpp"
#include "spec/plan/plan.hpp"

namespace assay::impl::run {

/// What is known of a run before its first step.
struct Start {
  spec::RunConfig config;  ///< as asked; open_record puts in the folder that is really written to
  spec::ModelSpec model;
  std::vector<std::string> without_effect;  ///< options of its config.json that change nothing
  spec::Batch batch;
  spec::Layout layout;
  DeviceChoice device;
  std::shared_ptr<const data::SampleSource> source;
  std::shared_ptr<const data::ValidationSet> validation;  ///< null: the run has none
  std::string validation_hash;                            ///< of the token ids that it evaluates
  Identity identity;                                      ///< as it was when the run began
  std::optional<ResumePoint> resume;                      ///< nothing: from step 0
  std::vector<std::string> notes;  ///< files that hold something else than the run goes on with
  Request request;                 ///< as asked
  Numerics numerics;               ///< the algorithms that compute it
  spec::memory::Plan plan;
  Count room;  ///< for the tensors of a rank [B]
  MachineMemory memory;

  /// The run that is to be continued has done all its steps, and its end.
  bool complete() const {
    return resume &&
           (resume->state.step > config.steps || (resume->state.step == config.steps && resume->end_is_done));
  }
};

/// Settings, ranks, data, checkpoint to resume, agreement, device, plan. Nothing is written: a run that is
/// refused leaves no trace. Collective. Errors: UserError of each part and SpecError of the settings; of
/// several ranks AgreedError.
Start prepare(const Request& request, const Rank& rank);

/// Makes the folder, last of all, so that a refused run leaves none behind, and states what the record begins
/// with. Collective. Errors: UserError(io).
spec::record::RunStart open_record(Start& start, const Rank& rank);

/// On rank 0, which writes: why the disk may be too small; nothing where it is not. Collective. Errors:
/// UserError(io), of several ranks AgreedError, where it holds not even one checkpoint.
std::optional<std::string> disk_warning(const Start& start, const Rank& rank);

}  // namespace assay::impl::run
