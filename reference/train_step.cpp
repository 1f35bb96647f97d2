#include "reference/train_step.hpp"

#include <limits>

#include "reference/model/balancing.hpp"
#include "reference/model/model.hpp"
#include "reference/ops/adamw.hpp"
#include "reference/ops/clip_grad_norm.hpp"
#include "spec/model/inventory.hpp"

namespace assay::reference {

namespace {

/// A bound that no finite norm exceeds: the coefficient is then exactly 1.
constexpr double no_bound = std::numeric_limits<double>::max();

/// Multiplies every gradient by the clip coefficient and reports it.
void clip(Parameters<double>& gradients, double max_norm, StepResult& result) {
  std::vector<Tensor<double>*> tensors;
  for (auto& [name, gradient] : gradients) tensors.push_back(&gradient);
  const auto clipped = clip_grad_norm::clip(tensors, max_norm == 0 ? no_bound : max_norm);
  result.gradient_norm = clipped.norm;
  result.clip_coefficient = clipped.coefficient;
}

void update(TrainState& state, const Parameters<double>& gradients, const spec::ModelSpec& model,
            const Hyperparameters& h, double learning_rate) {
  ++state.step;
  for (const spec::Parameter& parameter : spec::inventory(model).parameters) {
    if (!parameter.learned()) continue;
    adamw::update(state.parameters.at(parameter.name), gradients.at(parameter.name),
                  state.moment1.at(parameter.name), state.moment2.at(parameter.name),
                  {.learning_rate = learning_rate,
                   .beta1 = h.beta1,
                   .beta2 = h.beta2,
                   .eps = h.eps,
                   .weight_decay = parameter.matrix() ? h.weight_decay : 0,
                   .step = state.step});
  }
}

/// Moves the routers' biases, which have no gradient, by the loads of the step.
void move_biases(Parameters<double>& parameters, const spec::ModelSpec& model,
                 const std::vector<std::vector<Index>>& counts, double rate) {
  for (const spec::Parameter& parameter : spec::inventory(model).parameters) {
    if (parameter.role != spec::Role::router_bias) continue;
    Tensor<double>& bias = parameters.at(parameter.name);
    spec::load_balancing::move_bias({bias.flat().data(), static_cast<std::size_t>(bias.size())},
                                    counts.at(static_cast<std::size_t>(parameter.block - 1)), rate);
  }
}

}  // namespace

TrainState initial_state(const spec::ModelSpec& model, std::uint64_t seed) {
  return {.parameters = initial_parameters(model, seed), .moment1 = zeros(model), .moment2 = zeros(model)};
}

StepGradients step_gradients(const Parameters<double>& parameters, const spec::ModelSpec& model,
                             const std::vector<Batch>& micro_batches, double z_loss, const Recipes& recipes,
                             const balancing::Settings& balancing) {
  StepGradients sum;
  for (const Batch& batch : micro_batches) sum.valid_tokens += batch.valid_tokens();
  const model::Loss loss{.normalizer = static_cast<double>(sum.valid_tokens), .z_loss = z_loss};

  // The loads of the whole step come before the first backward pass.
  std::vector<model::Forward<double>> forwards;
  for (const Batch& batch : micro_batches) {
    forwards.push_back(model::forward(parameters, model, batch, loss, recipes, balancing.capacity_factor));
    sum.cross_entropy += forwards.back().loss.cross_entropy;
    sum.z_loss += forwards.back().loss.z_loss;
  }
  sum.balance = balancing::balance(forwards, micro_batches, model, balancing);
  for (std::size_t micro = 0; micro < forwards.size(); ++micro)
    for (const auto& [name, gradient] :
         model::backward(forwards[micro], parameters, model, micro_batches[micro], loss, recipes,
                         sum.balance.upstreams[micro]))
      add_gradient(sum.gradients, name, gradient);
  return sum;
}

StepResult train_step(TrainState& state, const spec::ModelSpec& model,
                      const std::vector<Batch>& micro_batches, const Hyperparameters& hyperparameters,
                      double learning_rate, const Recipes& recipes) {
  StepGradients of_step = step_gradients(state.parameters, model, micro_batches, hyperparameters.z_loss,
                                         recipes, hyperparameters.balancing);
  StepResult result{.cross_entropy = of_step.cross_entropy,
                    .z_loss = of_step.z_loss,
                    .valid_tokens = of_step.valid_tokens,
                    .balance = of_step.balance.balance,
                    .router_z = of_step.balance.router_z,
                    .dropped = of_step.balance.dropped};
  clip(of_step.gradients, hyperparameters.clip, result);
  update(state, of_step.gradients, model, hyperparameters, learning_rate);
  move_biases(state.parameters, model, of_step.balance.counts, hyperparameters.balancing.bias_rate);
  return result;
}

}  // namespace assay::reference
