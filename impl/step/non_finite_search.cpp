// Which rank and tensor made the loss or the gradient norm of a step NaN or infinite.
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "impl/step/executor.hpp"

namespace assay::impl::run {

using spec::Action;
using spec::ActionKind;

/// This rank's first parameter whose gradient is not finite. What several ranks have left of their gradients
/// is the sum, so the step is run again up to that sum: it is a pure function of its input, and the update
/// has changed nothing.
std::string Executor::search_gradients(const StepInput& input, const std::vector<Action>& actions) {
  if (groups_.all().size() == 1) return parameters_.non_finite_sum();
  std::vector<Action> sums;
  std::copy_if(actions.begin(), actions.end(), std::back_inserter(sums), [](const Action& action) {
    return action.kind != ActionKind::clip && action.kind != ActionKind::update &&
           action.kind != ActionKind::all_gather;
  });
  const StepResult result = result_;
  parameters_.begin_search();
  run_list(input, sums);
  result_ = result;
  return parameters_.end_search();
}

/// What is not finite when every rank's own loss and gradients are.
std::string Executor::no_rank_alone() {
  // Each rank knows what it holds.
  std::string summed;
  for (const std::string& name : groups_.all().all_gather(parameters_.non_finite_sum()))
    if (summed.empty()) summed = name;
  if (!summed.empty()) return "gradient of " + summed + " is finite on every rank, its sum over ranks is not";
  if (!std::isfinite(losses_.sum().item<double>()))
    return "the loss is finite on every rank, its sum over ranks is not";
  if (!std::isfinite(sum_of_squares().item<double>()))
    return "every gradient is finite, the sum of their squares is not";
  return "run again, the same step is finite on every rank: a device or a link returned a wrong number, find "
         "it with parallel.check_replicas_every=1";
}

void Executor::refuse_non_finite(const StepInput& input, const std::vector<Action>& actions) {
  const bool alone = groups_.all().size() == 1;
  const double local_loss = (alone ? losses_ : local_losses_).sum().item<double>();
  const std::string gradient = search_gradients(input, actions);
  sum_shared_gradients(buffers_, groups_.tensor(), groups_.holders());  // as the step does behind them
  std::string mine;
  if (!std::isfinite(local_loss)) mine = "loss is " + std::to_string(local_loss);
  if (!gradient.empty()) mine += (mine.empty() ? "" : ", ") + ("gradient of " + gradient + " is not finite");

  std::string reason;
  const std::vector<std::string> all = groups_.all().all_gather(mine);
  for (std::size_t rank = 0; rank < all.size(); ++rank)
    if (!all[rank].empty())
      reason += (reason.empty() ? "rank " : "; rank ") + std::to_string(rank) + ": " + all[rank];
  if (std::all_of(all.begin(), all.end(), [](const std::string& rank) { return rank.empty(); }))
    reason = no_rank_alone();
  throw NonFiniteError(
      "not finite at step " + std::to_string(input.step + 1) + ": " + reason +
          "; stopped before the update, weights are those after the step before; look at the learning "
          "rate, the clip setting and the data of this step (sample_hash in the record)",
      reason, result_);
}

}  // namespace assay::impl::run
