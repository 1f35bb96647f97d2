#include "spec/batch/ramp.hpp"

#include <algorithm>
#include <limits>

#include "spec/count.hpp"
#include "spec/error.hpp"
#include "spec/text/amount.hpp"

namespace assay::spec {
namespace {

constexpr std::int64_t most_of_stage = 1'000'000'000'000;

std::optional<std::int64_t> number_from_1(std::string_view text) {
  const auto number = whole_number(text);
  return number && *number >= 1 && *number <= most_of_stage ? number : std::nullopt;
}

}  // namespace

std::int64_t sequences_of(const GlobalBatch& batch, std::int64_t step) {
  for (const RampStage& stage : batch.ramp) {
    if (step < stage.steps) return stage.sequences;
    step -= stage.steps;
  }
  return batch.sequences;
}

std::int64_t sequences_before(const GlobalBatch& batch, std::int64_t step) {
  Count before;
  for (const RampStage& stage : batch.ramp) {
    const std::int64_t steps = std::min(step, stage.steps);
    before += Count(steps) * stage.sequences;
    step -= steps;
  }
  before += Count(step) * batch.sequences;
  // ramp_c1
  require(before <= Count(std::numeric_limits<std::int64_t>::max()), "ramp_c1",
          [&] { return "the steps before have " + before.to_string() + " sequences, 2^63 or more"; });
  return before.to_int64();
}

std::int64_t steps_for(const GlobalBatch& batch, std::int64_t sequences) {
  const auto whole = [&](std::int64_t each) { return (sequences - 1) / each + 1; };
  std::int64_t steps = 0;
  for (const RampStage& stage : batch.ramp) {
    if (whole(stage.sequences) <= stage.steps) return steps + whole(stage.sequences);
    sequences -= stage.sequences * stage.steps;
    steps += stage.steps;
  }
  return steps + whole(batch.sequences);
}

GlobalBatch changed_at(const GlobalBatch& before, std::int64_t step, std::int64_t sequences) {
  GlobalBatch after{.sequences = sequences, .ramp = before.ramp};
  for (const RampStage& stage : before.ramp) step -= stage.steps;
  if (step > 0) after.ramp.push_back({before.sequences, step});
  return after;
}

std::string to_text(const RampStage& stage) {
  return std::to_string(stage.sequences) + ":" + std::to_string(stage.steps);
}

std::optional<RampStage> ramp_stage(std::string_view text) {
  const std::size_t colon = text.find(':');
  if (colon == text.npos) return {};
  const auto sequences = number_from_1(text.substr(0, colon)), steps = number_from_1(text.substr(colon + 1));
  if (!sequences || !steps) return {};
  return RampStage{*sequences, *steps};
}

}  // namespace assay::spec
