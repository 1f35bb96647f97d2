#pragma once
// `assay bench step`: where the time of a recipe's step goes, measured while the trainer runs it.
#include <functional>
#include <string>

#include "impl/bench/results.hpp"
#include "spec/config/run_config.hpp"

namespace assay::impl::bench {

/// Trains a few steps of `config`, which is checked, on one rank; nothing is written or saved. `steps` plain
/// ones after a warm-up of as many (on a GPU at least three), then `steps` taken apart by
/// metrics::OpClock, of which the median one is returned. `say` gets a line for each. Errors: those of
/// training; SpecError waterfall_c1.. when the parts do not make up the step.
StepTimes measure_step(const spec::RunConfig& config, std::int64_t steps,
                       const std::function<void(const std::string&)>& say);

}  // namespace assay::impl::bench
