#pragma once
// An optimizer step as a list of actions, made by a pure function and run by one small executor.
// Rules and example: spec/schedule/actions.md.
#include <cstdint>
#include <vector>

#include "spec/parallel/data_layout.hpp"

namespace assay::spec {

/// all_reduce, reduce_scatter: gradients are summed over ranks; all_gather: new weights reach every rank.
enum class ActionKind { forward, backward, all_reduce, reduce_scatter, clip, update, all_gather };

struct Action {
  ActionKind kind;
  std::int64_t micro_batch =
      -1;  ///< in [0, accumulation) for an action of one micro-batch; -1: of the whole step
  bool operator==(const Action&) const = default;
};

/// The step of one rank: forward and backward of each micro-batch in turn; with several ranks the layout's
/// collectives for the gradients; clip, update; all_gather for zero1. Errors: SpecError
/// layout_c1 (accumulation below 1).
std::vector<Action> step_actions(std::int64_t accumulation, const Layout& layout);

/// Checks that a list of actions is a step. Errors: SpecError layout_c1..c8, the first rule that it
/// violates.
void check_actions(const std::vector<Action>& actions, std::int64_t accumulation, const Layout& layout);

}  // namespace assay::spec
