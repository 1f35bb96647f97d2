#pragma once
// The whole optimizer step in double, as one would write it on a blackboard: no ranks, no flat buffers, no
// overlap.
#include <cstdint>
#include <vector>

#include "reference/model/balancing.hpp"
#include "reference/model/batch.hpp"
#include "reference/model/parameters.hpp"
#include "reference/model/recipes.hpp"
#include "spec/model/model_spec.hpp"

namespace assay::reference {

/// What an optimizer step continues from.
struct TrainState {
  Parameters<double> parameters;
  Parameters<double> moment1, moment2;  ///< AdamW's running means of the gradient and of its square
  Index step = 0;                       ///< optimizer steps done
};

/// Initial parameters and zero moments. Errors: SpecError model_c1..
TrainState initial_state(const spec::ModelSpec& model, std::uint64_t seed);

struct Hyperparameters {
  double beta1 = 0.9, beta2 = 0.95, eps = 1e-8;
  double weight_decay = 0.1;  ///< of matrices, embedding and head included; gains and biases have none
  double clip = 1;            ///< largest global gradient norm; 0: no clipping
  double z_loss = 0;          ///< coefficient
  balancing::Settings balancing = {};
};

/// Losses and gradients of a whole step's batch.
struct StepGradients {
  double cross_entropy = 0;  ///< mean over the valid tokens of all batches [nat]
  double z_loss = 0;         ///< z-loss over the same tokens
  Index valid_tokens = 0;    ///< of all batches
  balancing::Balance balance;
  Parameters<double>
      gradients;  ///< of cross_entropy, z_loss and the losses of `balance` by their coefficients
};

/// Sums the losses and gradients of the micro-batches of all ranks, each divided by the number of valid
/// tokens of them all: the result does not depend on how the sequences are split. In FP8 it does: scales are
/// those of a micro-batch's tensors. So does the balance loss by micro-batches, of the batch so far, and
/// Hugging Face's.
///
/// Errors: SpecError cross_entropy_c3 when no target counts, and those of reference/model/model.hpp
StepGradients step_gradients(const Parameters<double>& parameters, const spec::ModelSpec& model,
                             const std::vector<Batch>& micro_batches, double z_loss,
                             const Recipes& recipes = {}, const balancing::Settings& balancing = {});

struct StepResult {
  double cross_entropy = 0;  ///< [nat]
  double z_loss = 0;
  double gradient_norm = 0;     ///< global L2 norm before clipping
  double clip_coefficient = 1;  ///< what the gradient was multiplied by
  Index valid_tokens = 0;
  double balance = 0, router_z = 0;  ///< without their coefficients
  double dropped = 0;
};

/// One optimizer step: forward, backward, clip, AdamW, and last the routers' biases by the step's loads.
/// Equations: spec/model/model.md, spec/ops/clip_grad_norm/clip_grad_norm.md, spec/ops/adamw/adamw.md,
/// spec/ops/load_balancing/load_balancing.md Errors:    as `step_gradients`, and those of adamw and
/// clip_grad_norm on settings out of range. `state` is
///            unchanged when anything before the update throws.
StepResult train_step(TrainState& state, const spec::ModelSpec& model,
                      const std::vector<Batch>& micro_batches, const Hyperparameters& hyperparameters,
                      double learning_rate, const Recipes& recipes = {});

}  // namespace assay::reference
