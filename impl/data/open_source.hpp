#pragma once
// The data of a run.
#include <memory>

#include "impl/data/sample_source.hpp"
#include "spec/config/run_config.hpp"
#include "spec/model/model_spec.hpp"

namespace assay::impl::data {

/// Text of the built-in grammar, or the token files of data.paths. Errors: as GrammarData and TokenData.
std::shared_ptr<const SampleSource> open_source(const spec::RunConfig& config, const spec::ModelSpec& model);

}  // namespace assay::impl::data
