#include "impl/run/executor.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "impl/ops/clip_grad_norm.hpp"

namespace assay::impl::run {

using spec::Action;
using spec::ActionKind;

Executor::Executor(Model& model, ParameterBuffers& buffers, ParameterLayout& parameters,
                   Communicator& communicator, const StepSettings& settings, PhaseClock& clock)
    : model_(model),
      buffers_(buffers),
      parameters_(parameters),
      communicator_(communicator),
      settings_(settings),
      clock_(clock) {}

StepResult Executor::run(const StepInput& input, const std::vector<Action>& actions) {
  result_ = {};
  activations_.assign(input.micro_batches.size(), {});
  losses_ = at::zeros({2}, at::TensorOptions().dtype(at::kDouble).device(buffers_.weights.device()));
  zero_gradients(buffers_.gradients);
  for (const Action& action : actions) {
    const auto micro_batch = static_cast<std::size_t>(action.micro_batch);
    switch (action.kind) {
      case ActionKind::forward:
        forward(input, micro_batch);
        break;
      case ActionKind::backward:
        backward(input, micro_batch);
        break;
      case ActionKind::all_reduce:
      case ActionKind::reduce_scatter:
      case ActionKind::all_gather:
        reduce(action.kind);
        break;
      case ActionKind::clip:
        clip();
        break;
      case ActionKind::update:
        update(input);
        break;
    }
  }
  read_result(input);
  return result_;
}

void Executor::forward(const StepInput& input, std::size_t micro_batch) {
  clock_.enter(Phase::forward);
  parameters_.begin_forward();
  const Loss loss = model_.forward(input.micro_batches.at(micro_batch), input.valid_tokens, settings_.z_loss,
                                   activations_.at(micro_batch));
  losses_[0] += loss.cross_entropy;
  losses_[1] += loss.z_loss;
}

void Executor::backward(const StepInput& input, std::size_t micro_batch) {
  clock_.enter(Phase::backward);
  parameters_.begin_backward(/*last_micro_batch=*/micro_batch + 1 == input.micro_batches.size());
  model_.backward(input.micro_batches.at(micro_batch), std::move(activations_.at(micro_batch)));
}

/// What is left of communication when the work behind which it was hidden is done.
void Executor::reduce(ActionKind kind) {
  clock_.enter(Phase::reduce);
  if (kind == ActionKind::all_reduce) parameters_.all_reduce();
  if (kind == ActionKind::reduce_scatter) parameters_.reduce_scatter();
  if (kind == ActionKind::all_gather) parameters_.all_gather();
}

void Executor::clip() {
  if (communicator_.size() > 1) {
    clock_.enter(Phase::reduce);
    local_losses_ = losses_.clone();
    communicator_.all_reduce_sum(losses_);
  }
  clock_.enter(Phase::clip);
  norm_and_coefficient_ =
      clip_grad_norm::norm_and_coefficient(parameters_.sum_of_squares(), losses_, settings_.clip);
}

/// Changes nothing when the coefficient says that a number is not finite.
void Executor::update(const StepInput& input) {
  clock_.enter(Phase::update);
  impl::update(buffers_, settings_.adamw, input.learning_rate, input.step + 1, norm_and_coefficient_[1]);
  parameters_.weights_changed();
}

/// The only place where a step waits for a GPU.
void Executor::read_result(const StepInput& input) {
  clock_.enter(Phase::other);
  if (communicator_.size() > 1) communicator_.settle();
  const at::Tensor numbers = at::cat({losses_, norm_and_coefficient_}).cpu();
  const double* number = numbers.const_data_ptr<double>();
  result_ = {.cross_entropy = number[0],
             .z_loss = number[1],
             .gradient_norm = number[2],
             .clip_coefficient = number[3]};
  if (!std::isfinite(result_.clip_coefficient)) refuse_non_finite(input);
}

/// What is not finite when every rank's own loss and gradients are.
std::string Executor::overflow() {
  // Each rank knows what it holds.
  std::string summed;
  for (const std::string& name : communicator_.all_gather(parameters_.non_finite_sum()))
    if (summed.empty()) summed = name;
  if (!summed.empty()) return "gradient of " + summed + " is finite on every rank, its sum over ranks is not";
  if (!std::isfinite(result_.cross_entropy + result_.z_loss))
    return "the loss is finite on every rank, its sum over ranks is not";
  return "every gradient is finite, the sum of their squares is not";
}

void Executor::refuse_non_finite(const StepInput& input) {
  const bool alone = communicator_.size() == 1;
  const double local_loss =
      alone ? result_.cross_entropy + result_.z_loss : local_losses_.sum().item<double>();
  const std::string gradient = alone ? parameters_.non_finite_sum() : parameters_.non_finite_gradient();
  std::string mine;
  if (!std::isfinite(local_loss)) mine = "loss is " + std::to_string(local_loss);
  if (!gradient.empty()) mine += (mine.empty() ? "" : ", ") + ("gradient of " + gradient + " is not finite");

  std::string message = "not finite at step " + std::to_string(input.step + 1) + ":";
  const std::vector<std::string> all = communicator_.all_gather(mine);
  for (std::size_t rank = 0; rank < all.size(); ++rank)
    if (!all[rank].empty()) message += " rank " + std::to_string(rank) + ": " + all[rank] + ";";
  if (std::all_of(all.begin(), all.end(), [](const std::string& rank) { return rank.empty(); }))
    message += " " + overflow() + ";";
  throw NonFiniteError(
      message +
      " stopped before the update, weights are those after the step before; look at the learning "
      "rate, the clip setting and the data of this step (sample_hash in the record)");
}

}  // namespace assay::impl::run
