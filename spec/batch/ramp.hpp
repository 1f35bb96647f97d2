#pragma once
// A global batch that grows in stages: how many sequences a step has, and where its first one stands in the
// data's order. Pure functions of the step: spec/batch/ramp.md.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay::spec {

/// `steps` steps of `sequences` sequences each, over all ranks.
struct RampStage {
  std::int64_t sequences = 0;
  std::int64_t steps = 0;
  bool operator==(const RampStage&) const = default;
};

/// The batch of a run: the stages of its ramp, then `sequences` for ever.
struct GlobalBatch {
  std::int64_t sequences = 0;
  std::vector<RampStage> ramp = {};
  bool operator==(const GlobalBatch&) const = default;
};

/// Sequences of step `step` >= 0.
std::int64_t sequences_of(const GlobalBatch& batch, std::int64_t step);
/// Sequences of all steps before `step`: where its first stands in the data's order. Errors: SpecError
/// ramp_c1 (2^63 or more).
std::int64_t sequences_before(const GlobalBatch& batch, std::int64_t step);

/// The fewest steps that have at least `sequences` > 0 together.
std::int64_t steps_for(const GlobalBatch& batch, std::int64_t sequences);

/// The batch of a run whose final one is changed at step `step`: `before` until then and to the end of its
/// ramp, `sequences` behind both.
GlobalBatch changed_at(const GlobalBatch& before, std::int64_t step, std::int64_t sequences);

/// "32:1000".
std::string to_text(const RampStage& stage);
/// The stage that such a text says, or nothing; both numbers are at least 1.
std::optional<RampStage> ramp_stage(std::string_view text);

}  // namespace assay::spec
