#pragma once
// Constraints between settings (spec/config/config.md), checked before any allocation.
#include <cstdint>

#include "spec/config/run_config.hpp"
#include "spec/model/model_spec.hpp"

namespace assay::spec {

/// Errors: SpecError config_c1..config_c6, config_c11, config_c12 and the others that need no model; of
/// several ManyFaults. The message names the settings, their values and what would hold.
void check(const RunConfig& config);

/// Settings of steps that never come: what a person asks for must happen. Apart from check(config), since the
/// settings of a run that goes on may say more: its steps may have been made fewer. Errors: SpecError
/// config_c41, config_c42, config_c43.
void check_reached(const RunConfig& config);

/// Constraints that need the model. Errors: UserError(usage) when the trainer does not have the model
/// (spec/model/trainable.hpp), SpecError config_c7..config_c10,
/// config_c16, config_c26.
void check(const RunConfig& config, const ModelSpec& model);

/// Ranks that read different sequences, of all `ranks` of a run. Errors: SpecError config_c13.
std::int64_t data_ranks(const RunConfig& config, std::int64_t ranks);

}  // namespace assay::spec
