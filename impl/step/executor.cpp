#include "impl/step/executor.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "impl/ops/clip_grad_norm/clip_grad_norm.hpp"
#include "spec/ops/load_balancing/load_balancing.hpp"
#include "spec/parallel/volume.hpp"

namespace assay::impl::run {

using spec::Action;
using spec::ActionKind;

namespace {
constexpr std::int64_t numbers_before_update = 2;  // in front of UpdateNumbers

at::TensorOptions numbers_on(at::Device device) { return at::TensorOptions(device).dtype(at::kDouble); }

}  // namespace

Executor::Executor(Model& model, ParameterBuffers& buffers, ParameterLayout& parameters, LayoutGroups& groups,
                   const StepSettings& settings, PhaseClock& clock)
    : model_(model),
      buffers_(buffers),
      parameters_(parameters),
      groups_(groups),
      settings_(settings),
      clock_(clock),
      captured_(model, parameters),
      numbers_(at::zeros({numbers_before_update + std::tuple_size_v<UpdateNumbers>},
                         numbers_on(buffers.weights.device()))),
      host_numbers_(numbers_.is_cuda() ? at::empty(numbers_.sizes(), numbers_on(at::kCPU).pinned_memory(true))
                                       : numbers_),
      losses_(at::zeros({spec::reduced_losses(spec::inventory(model.spec())) + settings.sources},
                        numbers_.options())),
      norm_and_coefficient_(at::zeros({2}, numbers_.options())) {
  if (settings.sources > 0)
    sources_ = losses_.narrow(0, losses_.numel() - settings.sources, settings.sources);
  if (const auto& experts = model.spec().experts)
    routing_ = RoutingSums(losses_.narrow(0, 2, losses_.numel() - 2 - settings.sources)
                               .view({-1, spec::load_balancing::numbers_before_loads + experts->count}),
                           settings.balance_of_batch);
}

StepResult Executor::run(const StepInput& input, const std::vector<Action>& actions) {
  captured_.on_its_stream([&] {
    captured_.prepare(input.step + 1, input.micro_batches,
                      [this](StepPart part, const TokenBatch& batch, Activations& activations) {
                        if (part == StepPart::forward) work_forward(batch, activations);
                        if (part == StepPart::backward) work_backward(batch, activations, routing_.shares());
                        if (part == StepPart::clip) work_clip();
                        if (part == StepPart::update) work_update();
                      });
    run_list(input, actions);
    read_result();
    if (!std::isfinite(result_.clip_coefficient)) refuse_non_finite(input, actions);
  });
  return result_;
}

void Executor::run_list(const StepInput& input, const std::vector<Action>& actions) {
  begin(input);
  backwards_left_ = std::count_if(actions.begin(), actions.end(),
                                  [](const Action& action) { return action.kind == ActionKind::backward; });
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
        update();
        break;
    }
  }
}

/// The numbers of a step reach the device in one small copy.
void Executor::begin(const StepInput& input) {
  clock_.enter(Phase::other);
  result_ = {};
  activations_.assign(input.micro_batches.size(), {});
  shares_of_.assign(input.micro_batches.size(), {});
  const UpdateNumbers numbers =
      update_numbers(buffers_, settings_.adamw, input.learning_rate, input.step + 1 - input.skipped);
  auto* number = host_numbers_.data_ptr<double>();  // the step before has been waited for
  number[0] = input.valid_tokens;
  number[1] = input.tokens;
  std::copy(numbers.begin(), numbers.end(), number + numbers_before_update);
  numbers_.copy_(host_numbers_, /*non_blocking=*/true);
  losses_.zero_();
  // Captured GEMMs are the same ones in each micro-batch.
  parameters_.begin_step(captured_.replays() ? linear::GradientSum::continues : linear::GradientSum::starts);
}

void Executor::forward(const StepInput& input, std::size_t micro_batch) {
  clock_.enter(Phase::forward);
  const metrics::Range range([&] { return "micro-batch " + std::to_string(micro_batch + 1); });
  const TokenBatch& batch = input.micro_batches.at(micro_batch);
  if (captured_.replays()) return captured_.replay_forward(batch, micro_batch);
  parameters_.begin_forward();
  work_forward(batch, activations_.at(micro_batch));
  if (routing_.shares().defined()) shares_of_.at(micro_batch) = routing_.shares().clone();
}

router::Auxiliary Executor::auxiliary(const at::Tensor& shares) const {
  return {.balance = settings_.balance,
          .z = settings_.router_z,
          .tokens = numbers_[1],
          .shares = shares,
          .capacity = settings_.capacity};
}

void Executor::work_forward(const TokenBatch& batch, Activations& activations) {
  const Loss loss =
      model_.forward(batch, numbers_[0], settings_.z_loss, activations, auxiliary(routing_.shares()));
  losses_[0] += loss.cross_entropy;
  losses_[1] += loss.z_loss;
  routing_.add(loss.routing, groups_);
  if (sources_.defined()) add_sources(batch, loss);
}

/// A source's sequences in their order, so that the sums are the same bits again.
void Executor::add_sources(const TokenBatch& batch, const Loss& loss) {
  const at::Tensor of_sequences = loss.of_rows.view({batch.B, batch.T}).sum(1);
  const at::Tensor all = at::arange(sources_.numel(), batch.sources.options());
  sources_ +=
      at::where(batch.sources.eq(all.unsqueeze(1)), of_sequences, at::zeros({}, of_sequences.options()))
          .sum(1);
}

void Executor::backward(const StepInput& input, std::size_t micro_batch) {
  clock_.enter(Phase::backward);
  const metrics::Range range([&] { return "micro-batch " + std::to_string(micro_batch + 1); });
  if (captured_.replays()) return captured_.replay_backward(micro_batch);
  parameters_.begin_backward(/*last_micro_batch=*/--backwards_left_ == 0);
  work_backward(input.micro_batches.at(micro_batch), activations_.at(micro_batch),
                shares_of_.at(micro_batch));
}

void Executor::work_backward(const TokenBatch& batch, Activations& activations, const at::Tensor& shares) {
  model_.backward(batch, std::exchange(activations, {}), auxiliary(shares));
}

/// What is left of communication when the work behind which it was hidden is done.
void Executor::reduce(ActionKind kind) {
  clock_.enter(Phase::reduce);
  if (kind == ActionKind::all_reduce) parameters_.all_reduce();
  if (kind == ActionKind::reduce_scatter) parameters_.reduce_scatter();
  if (kind == ActionKind::all_gather) parameters_.all_gather();
}

void Executor::clip() {
  if (groups_.all().size() > 1) {
    clock_.enter(Phase::reduce);
    sum_shared_gradients(buffers_, groups_.tensor(), groups_.holders());
    local_losses_ = losses_.clone();
    routing_.sum_over_tensor_ranks(groups_.tensor());
    groups_.tokens().all_reduce_sum(losses_);
  }
  clock_.enter(Phase::clip);
  if (captured_.replays()) return captured_.replay(StepPart::clip);
  work_clip();
}

void Executor::work_clip() {
  norm_and_coefficient_.copy_(
      clip_grad_norm::norm_and_coefficient(sum_of_squares(), losses_, settings_.clip));
}

/// Of the whole gradient: each element once.
at::Tensor Executor::sum_of_squares() {
  const at::Tensor sum = parameters_.sum_of_squares();
  return groups_.tensor().size() == 1 ? sum : sum_in_rank_order(sum, groups_.tensor());
}

void Executor::update() {
  changes_(false);
  clock_.enter(Phase::update);
  if (captured_.replays())
    captured_.replay(StepPart::update);
  else
    work_update();
  changes_(true);
  parameters_.weights_changed();
  if (groups_.all().size() > 1) model_.weights_changed();
}

/// Changes nothing when the coefficient says that a number is not finite.
void Executor::work_update() {
  impl::update(buffers_, settings_.adamw,
               numbers_.narrow(0, numbers_before_update, std::tuple_size_v<UpdateNumbers>),
               norm_and_coefficient_[1]);
  if (buffers_.router_biases.defined())
    move_router_biases(buffers_.router_biases, routing_.loads(), settings_.bias_rate,
                       norm_and_coefficient_[1]);
  if (groups_.all().size() > 1) return;  // each block's twins are made when its new weights are there
  model_.weights_changed();
  model_.quantise_weights();
}

void Executor::capture_with(std::unique_ptr<StepCapture> capture) {
  TORCH_CHECK(groups_.all().size() == 1, "steps of one rank are captured");
  captured_.begin_with(std::move(capture));
}

/// The only place where a step waits for a GPU.
void Executor::read_result() {
  clock_.enter(Phase::other);
  if (groups_.all().size() > 1) groups_.all().settle();
  const at::Tensor numbers = at::cat({norm_and_coefficient_, losses_}).cpu();
  const double* number = numbers.const_data_ptr<double>();
  result_ = {.cross_entropy = number[2],
             .z_loss = number[3],
             .gradient_norm = number[0],
             .clip_coefficient = number[1]};
  if (!routing_.empty())
    result_.routing = routing_.result(numbers.narrow(0, 4, losses_.numel() - 2 - settings_.sources),
                                      settings_.capacity > 0);
  result_.source_losses.assign(number + numbers.numel() - settings_.sources, number + numbers.numel());
}

}  // namespace assay::impl::run
