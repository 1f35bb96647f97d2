#pragma once
// The data of a run.
#include <memory>
#include <optional>

#include "impl/data/sample_source.hpp"
#include "impl/data/token_format.hpp"
#include "spec/config/run_config.hpp"
#include "spec/model/model_spec.hpp"

namespace assay::impl::data {

/// data.dtype, where it is stated.
std::optional<TokenType> stated_type(const spec::RunConfig& config);

/// Text of the built-in grammar, or the token files of data.paths. Errors: as GrammarData and TokenData.
std::shared_ptr<const SampleSource> open_source(const spec::RunConfig& config, const spec::ModelSpec& model);

}  // namespace assay::impl::data
