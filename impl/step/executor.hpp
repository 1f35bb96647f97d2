#pragma once
// Runs the action list of one optimizer step (spec/schedule/actions.hpp). This is the training step, top to
// bottom.
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "impl/metrics/phases.hpp"
#include "impl/model/model.hpp"
#include "impl/params/layouts/parameter_layout.hpp"
#include "impl/params/optimizer.hpp"
#include "impl/step/captured_step.hpp"
#include "impl/step/routing_sums.hpp"
#include "spec/error.hpp"
#include "spec/schedule/actions.hpp"

namespace assay::impl::run {

/// What one step trains on.
struct StepInput {
  std::int64_t step;                      ///< counts from 0
  double learning_rate;                   ///< of this step
  double valid_tokens;                    ///< over all micro-batches and ranks
  std::vector<TokenBatch> micro_batches;  ///< of this rank
  double tokens = 1;                      ///< valid or not, over all micro-batches and ranks
  std::int64_t skipped = 0;               ///< earlier steps that updated nothing
};

/// What one step measured; the same on every rank.
struct StepResult {
  double cross_entropy = 0;  ///< [nat per valid token], over all micro-batches and ranks
  double z_loss = 0;         ///< [nat per valid token]
  double gradient_norm = 0;  ///< before clipping
  double clip_coefficient = 1;
  std::optional<RoutingResult> routing = {};  ///< of a model with experts
  std::vector<double> source_losses =
      {};  ///< of a mixture: the sum over the valid tokens of each source [nat]
};

/// Settings of the step that do not change over a run.
struct StepSettings {
  AdamWSettings adamw;
  double clip = 0;                   ///< largest gradient norm, 0: none
  double z_loss = 0;                 ///< coefficient
  double balance = 0, router_z = 0;  ///< coefficients of the routers' losses
  bool balance_of_batch = false;  ///< shares of the balance loss are the batch's so far, not each sequence's
  double bias_rate = 0;           ///< of the routers' biases
  std::int64_t sources = 0;       ///< of a mixture; 0: one source
  double capacity = 0;            ///< factor that limits the rows of an expert; 0: none is dropped
};

/// A loss or gradient norm is NaN or infinite. Thrown on every rank alike; the message names step, rank and
/// tensor. Parameters, moments and router biases are those after the previous step, bit for bit: a step may
/// follow that trains on.
class NonFiniteError : public AgreedError {
 public:
  /// `reason`: rank and tensor; `result`: what the step measured.
  NonFiniteError(const std::string& message, std::string reason, const StepResult& result)
      : AgreedError(ExitCode::non_finite, message), reason_(std::move(reason)), result_(result) {}

  const std::string& reason() const { return reason_; }
  const StepResult& result() const { return result_; }

 private:
  std::string reason_;
  StepResult result_;
};

class Executor {
 public:
  Executor(Model& model, ParameterBuffers& buffers, ParameterLayout& parameters, LayoutGroups& groups,
           const StepSettings& settings, PhaseClock& clock);

  /// Forward and backward of every micro-batch, reduction, clip, update. Errors: NonFiniteError; those of the
  /// ops.
  StepResult run(const StepInput& input, const std::vector<spec::Action>& actions);

  /// From here on steps are captured, after the first ones, and replayed: one rank, and micro-batches of one
  /// shape. The same bits as without. Where capture fails, steps go on as before; and where documents need
  /// another number of slots (spec/memory/document_slots.hpp) than those captured, until it is captured
  /// anew, a few times.
  void capture_with(std::unique_ptr<StepCapture> capture);
  /// Called on the host before an update is begun, and behind it: with a GPU, once it was given the work.
  void on_update(std::function<void(bool ended)> changes) { changes_ = std::move(changes); }
  /// Drops what is captured, and its memory, until the next step: for other work on this device.
  void forget_captured() { captured_.forget(); }
  /// What became of capture since the last call, one line each.
  std::vector<std::string> new_notices() { return captured_.new_notices(); }

 private:
  void run_list(const StepInput& input, const std::vector<spec::Action>& actions);
  void begin(const StepInput& input);
  void forward(const StepInput& input, std::size_t micro_batch);
  void backward(const StepInput& input, std::size_t micro_batch);
  void reduce(spec::ActionKind kind);
  void clip();
  void update();
  void read_result();

  // What may be captured: the device's work of each part, which reads nothing of a step but its batch and
  // numbers_.
  void work_forward(const TokenBatch& batch, Activations& activations);
  void work_backward(const TokenBatch& batch, Activations& activations, const at::Tensor& shares);
  void work_clip();
  void work_update();
  at::Tensor sum_of_squares();
  router::Auxiliary auxiliary(const at::Tensor& shares) const;
  void add_sources(const TokenBatch& batch, const Loss& loss);
  // impl/step/non_finite_search.cpp
  [[noreturn]] void refuse_non_finite(const StepInput& input, const std::vector<spec::Action>& actions);
  std::string search_gradients(const StepInput& input, const std::vector<spec::Action>& actions);
  std::string no_rank_alone();

  Model& model_;
  ParameterBuffers& buffers_;
  ParameterLayout& parameters_;
  LayoutGroups& groups_;
  const StepSettings settings_;
  PhaseClock& clock_;
  CapturedStep captured_;

  std::vector<Activations> activations_;  ///< of the micro-batches between their forward and their backward
  /// [10] fp64 of the step: valid tokens, tokens, and UpdateNumbers (impl/params/optimizer.hpp).
  at::Tensor numbers_;
  at::Tensor host_numbers_;  ///< the same on the host: page-locked beside a GPU, else that tensor
  /// fp64, this rank's until reduced: cross-entropy, z-loss, and a row of each sparse layer.
  at::Tensor losses_;
  RoutingSums routing_;  ///< of rows in losses_
  std::vector<at::Tensor>
      shares_of_;                    ///< its shares behind the forward of each micro-batch, for its backward
  at::Tensor sources_;               ///< [sources] at the end of losses_, of a mixture
  at::Tensor norm_and_coefficient_;  ///< [2] fp64 (impl/ops/clip_grad_norm/clip_grad_norm.hpp)
  at::Tensor local_losses_;          ///< this rank's share before the reduction
  StepResult result_;

  std::function<void(bool ended)> changes_ = [](bool) {};
  std::ptrdiff_t backwards_left_ = 0;  ///< of the step that runs
};

}  // namespace assay::impl::run
