#pragma once
// What all ranks must have in common before any of them trains.
#include <string>
#include <utility>
#include <vector>

#include "impl/comm/communicator.hpp"
#include "impl/data/sample_source.hpp"
#include "impl/run/start/resume.hpp"
#include "spec/config/run_config.hpp"

namespace assay::impl::run {

/// Names and values, in the order in which a difference is reported.
using Facts = std::vector<std::pair<std::string, std::string>>;

/// Version and contents of the program, every setting but the threads of a rank, the model's fields, the
/// checkpoint that the run continues from (empty: none) or the weights that it begins from, the samples of
/// the first step and a hash of some of their tokens. Errors: those of checkpoint::content_of.
Facts start_facts(const spec::RunConfig& config, const Identity& identity, const data::SampleSource& source,
                  const std::string& resume_from);

/// Errors: AgreedError(usage) on every rank when one has another value of a fact than most: it names the
/// rank, the fact and both values. Collective.
void require_agreement(const Facts& facts, Communicator& communicator);

}  // namespace assay::impl::run
