#pragma once
// What a step measured, as an event of the record.
#include "impl/run/trainer.hpp"
#include "spec/record/event.hpp"

namespace assay::impl::run {

/// The step event of `report`. MFU and HFU are left out where `start` has no peak, and where no machine could
/// have run that fast.
spec::record::Step event_of(const StepReport& report, const spec::record::RunStart& start, at::Device device);

/// Of a step that was skipped: `skipped` of the run so far, this one too, of at most `allowed`.
spec::record::SkippedStep skipped_event_of(const StepReport& report, std::int64_t skipped,
                                           std::int64_t allowed);

}  // namespace assay::impl::run
