#pragma once
// A model of the user's own needs data of its own.
#include <string>
#include <vector>

#include "spec/config/run_config.hpp"

namespace assay::spec {

/// Where neither the recipe nor `overrides` says data.paths, a run reads text of the built-in grammar. That
/// is what the built-in models are tried on; for a model that is a file or a folder, or that starts from
/// weights, it is a mistake, unless data.paths = [] asks for it. Errors: UserError(usage) saying what to
/// give. Domain: `config` is what load(recipe, overrides) gave.
void require_data_of_own_model(const RunConfig& config, const std::string& recipe,
                               const std::vector<std::string>& overrides);

}  // namespace assay::spec
