#pragma once
// Every token id of a run's files, before its first step.
#include "impl/comm/communicator.hpp"
#include "spec/config/run_config.hpp"
#include "spec/model/model_spec.hpp"

namespace assay::impl::run {

/// Looks once at each id of data.paths and eval.paths; the ranks share the work, and what rank 0 remembers of
/// an earlier run (data::ScannedFiles) is not read again. Collective. Errors: UserError bad_data for an id
/// outside the model's vocabulary, with file, token, byte offset and id; those of TokenFile; of several ranks
/// AgreedError.
void check_token_ids(const spec::RunConfig& config, const spec::ModelSpec& model, Communicator& ranks);

}  // namespace assay::impl::run
