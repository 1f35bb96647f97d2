#pragma once
// An optimizer step as a list of actions, made by a pure function and run by one small executor.
// Rules and example: spec/layout/actions.md.
#include <cstdint>
#include <vector>

namespace assay::spec {

enum class ActionKind { forward, backward, reduce, clip, update };

struct Action {
  ActionKind kind;
  std::int64_t micro_batch = -1;  ///< of forward and backward, in [0, accumulation); -1 for the others
  bool operator==(const Action&) const = default;
};

/// The step of one rank: forward and backward of each micro-batch in turn, then reduce (ranks > 1 only: the
/// gradients' sum over ranks), clip, update. Errors: SpecError layout_c1 (accumulation or ranks below 1).
std::vector<Action> step_actions(std::int64_t accumulation, std::int64_t ranks);

/// Whether a list, however it was made, is a step. Errors: SpecError layout_c1..c6, the first rule that it
/// violates.
void check_actions(const std::vector<Action>& actions, std::int64_t accumulation, std::int64_t ranks);

}  // namespace assay::spec
