#pragma once
// What a run says about itself before its first step.
#include <memory>
#include <string>

#include "impl/comm/communicator.hpp"
#include "impl/data/sample_source.hpp"
#include "spec/batch/batch.hpp"
#include "spec/config/run_config.hpp"
#include "spec/model/model_spec.hpp"
#include "spec/plan/plan.hpp"
#include "spec/record/event.hpp"

namespace assay::impl::run {

/// Everything that `describe` needs to know of a run.
struct RunFacts {
  const spec::RunConfig& config;
  const spec::ModelSpec& model;
  const spec::Batch& batch;
  at::Device device;
  const data::SampleSource& source;
  const spec::memory::Plan& memory;  ///< of the settled configuration (impl/run/start/numerics.hpp)
};

/// The run_start event. Collective: every rank calls, and tells where it runs. The expected first loss is
/// that of the tokens that step 1 reads.
spec::record::RunStart describe(const RunFacts& facts, Communicator& communicator);

/// UTC, ISO 8601, seconds.
std::string now_utc();

}  // namespace assay::impl::run
