#include "impl/step/executor.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <span>
#include <tuple>
#include <utility>

#include "impl/metrics/op_times.hpp"
#include "impl/ops/clip_grad_norm/clip_grad_norm.hpp"
#include "spec/ops/load_balancing.hpp"
#include "spec/parallel/volume.hpp"

namespace assay::impl::run {

using spec::Action;
using spec::ActionKind;

namespace {
/// Steps that run as they are before one is captured: libraries make their plans in the first, and the
/// allocator's blocks are those of every later step after it.
constexpr int steps_before_capture = 2;
/// After so many steps whose documents need other slots nothing is captured anew.
constexpr int most_reshaped = 8;

constexpr std::int64_t numbers_before_update = 2;  // in front of UpdateNumbers
using spec::load_balancing::numbers_before_loads;

RoutingResult routing_of(const at::Tensor& rows, bool drops) {
  RoutingResult out;
  double dropped = 0, choices = 0;
  const auto layers = static_cast<double>(rows.size(0));
  for (std::int64_t layer = 0; layer < rows.size(0); ++layer) {
    const double* row = rows[layer].const_data_ptr<double>();
    const std::span<const double> loads(row + numbers_before_loads,
                                        static_cast<std::size_t>(rows.size(1) - numbers_before_loads));
    const double load = spec::load_balancing::largest_load(loads);
    out.balance += row[0];
    out.router_z += row[1];
    out.entropy += row[2] / layers;
    out.worst_load = std::max(out.worst_load, load);
    out.mean_load += load / layers;
    dropped += row[3];
    choices += std::accumulate(loads.begin(), loads.end(), 0.0);
  }
  if (drops) out.dropped = choices > 0 ? dropped / choices : 0;
  return out;
}

at::TensorOptions numbers_on(at::Device device) { return at::TensorOptions(device).dtype(at::kDouble); }

/// The same in memory of its own.
TokenBatch copy_of(const TokenBatch& batch) {
  const auto copy = [](const at::Tensor& list) { return list.defined() ? list.clone() : list; };
  const Documents& documents = batch.documents;
  return {.B = batch.B,
          .T = batch.T,
          .inputs = copy(batch.inputs),
          .targets = copy(batch.targets),
          .sources = copy(batch.sources),
          .positions = copy(batch.positions),
          .documents = {copy(documents.numbers), copy(documents.offsets), documents.on_host}};
}

bool same_sizes(const at::Tensor& a, const at::Tensor& b) {
  return a.defined() == b.defined() && (!a.defined() || a.sizes() == b.sizes());
}

void copy_batch(TokenBatch& to, const TokenBatch& from) {
  const auto copy = [](at::Tensor& into, const at::Tensor& list) {
    TORCH_CHECK(same_sizes(into, list), "micro-batches have different shapes: captured steps serve one");
    if (list.defined()) into.copy_(list, /*non_blocking=*/true);
  };
  copy(to.inputs, from.inputs);
  copy(to.targets, from.targets);
  copy(to.sources, from.sources);
  copy(to.positions, from.positions);
  copy(to.documents.numbers, from.documents.numbers);
  copy(to.documents.offsets, from.documents.offsets);
  to.documents.on_host = from.documents.on_host;
}

std::string first_line(const std::exception& error) {
  const auto* torch = dynamic_cast<const c10::Error*>(&error);
  const std::string text = torch ? torch->what_without_backtrace() : error.what();
  return text.substr(0, text.find('\n'));
}
}  // namespace

Executor::Executor(Model& model, ParameterBuffers& buffers, ParameterLayout& parameters, LayoutGroups& groups,
                   const StepSettings& settings, PhaseClock& clock)
    : model_(model),
      buffers_(buffers),
      parameters_(parameters),
      groups_(groups),
      settings_(settings),
      clock_(clock),
      numbers_(at::zeros({numbers_before_update + std::tuple_size_v<UpdateNumbers>},
                         numbers_on(buffers.weights.device()))),
      host_numbers_(numbers_.is_cuda() ? at::empty(numbers_.sizes(), numbers_on(at::kCPU).pinned_memory(true))
                                       : numbers_),
      losses_(at::zeros({spec::reduced_losses(spec::inventory(model.spec())) + settings.sources},
                        numbers_.options())),
      norm_and_coefficient_(at::zeros({2}, numbers_.options())) {
  if (settings.sources > 0)
    sources_ = losses_.narrow(0, losses_.numel() - settings.sources, settings.sources);
  const auto& experts = model.spec().experts;
  if (!experts) return;
  routing_ = losses_.narrow(0, 2, losses_.numel() - 2 - settings.sources)
                 .view({-1, numbers_before_loads + experts->count});
  if (settings.balance_of_batch) shares_ = at::zeros({routing_.size(0), experts->count}, losses_.options());
}

StepResult Executor::run(const StepInput& input, const std::vector<Action>& actions) {
  if (capture_)
    capture_->on_its_stream([&] { run_actions(input, actions); });
  else
    run_actions(input, actions);
  return result_;
}

void Executor::run_actions(const StepInput& input, const std::vector<Action>& actions) {
  if (capture_) check_capture(input);
  run_list(input, actions);
  read_result();
  if (!std::isfinite(result_.clip_coefficient)) refuse_non_finite(input, actions);
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

/// All that the device is told of a step, but for its batches, in one small copy.
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
  parameters_.begin_step(captured_ ? linear::GradientSum::continues : linear::GradientSum::starts);
}

void Executor::forward(const StepInput& input, std::size_t micro_batch) {
  clock_.enter(Phase::forward);
  const metrics::Range range([&] { return "micro-batch " + std::to_string(micro_batch + 1); });
  const TokenBatch& batch = input.micro_batches.at(micro_batch);
  if (captured_) {
    copy_batch(captured_batch_, batch);
    in_captured_batch_ = micro_batch;
    return replay_part(StepPart::forward);
  }
  parameters_.begin_forward();
  work_forward(batch, activations_.at(micro_batch));
  if (shares_.defined()) shares_of_.at(micro_batch) = shares_.clone();
}

router::Auxiliary Executor::auxiliary(const at::Tensor& shares) const {
  return {.balance = settings_.balance,
          .z = settings_.router_z,
          .tokens = numbers_[1],
          .shares = shares,
          .capacity = settings_.capacity};
}

void Executor::work_forward(const TokenBatch& batch, Activations& activations) {
  const Loss loss = model_.forward(batch, numbers_[0], settings_.z_loss, activations, auxiliary(shares_));
  losses_[0] += loss.cross_entropy;
  losses_[1] += loss.z_loss;
  if (routing_.defined()) add_routing(loss);
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

/// Of this rank's experts in each sparse layer, so far; of all ranks' once the losses are summed.
at::Tensor Executor::loads() const {
  return routing_.narrow(1, numbers_before_loads, routing_.size(1) - numbers_before_loads);
}

/// What routers count of a rank's own rows, of all ranks'.
void Executor::sum_over_tokens(const at::Tensor& counted) {
  if (groups_.tensor().size() > 1) groups_.tensor().all_reduce_sum(counted);
  groups_.tokens().all_reduce_sum(counted);
}

void Executor::add_routing(const Loss& loss) {
  for (std::size_t layer = 0; layer < loss.routing.size(); ++layer)
    routing_[static_cast<std::int64_t>(layer)] += loss.routing[layer].narrow(0, 0, routing_.size(1));
  if (!shares_.defined()) return;
  const at::Tensor so_far = loads().clone();
  if (groups_.all().size() > 1) sum_over_tokens(so_far);
  shares_.copy_(so_far / so_far.sum(1, /*keepdim=*/true));
  const std::int64_t X = shares_.size(1);
  for (std::size_t layer = 0; layer < loss.routing.size(); ++layer) {
    const auto row = static_cast<std::int64_t>(layer);
    const at::Tensor probabilities = loss.routing[layer].narrow(0, routing_.size(1), X);
    routing_[row][0] += (shares_[row] * probabilities).sum() * X;
  }
}

void Executor::backward(const StepInput& input, std::size_t micro_batch) {
  clock_.enter(Phase::backward);
  const metrics::Range range([&] { return "micro-batch " + std::to_string(micro_batch + 1); });
  if (captured_) {
    TORCH_CHECK(in_captured_batch_ == micro_batch, "a captured backward follows its own forward");
    return replay_part(StepPart::backward);
  }
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
    // The losses of tokens are the same on every tensor rank; routers saw a rank's own rows.
    if (routing_.defined() && groups_.tensor().size() > 1)
      groups_.tensor().all_reduce_sum(routing_.view({-1}));
    groups_.tokens().all_reduce_sum(losses_);
  }
  clock_.enter(Phase::clip);
  if (captured_) return replay_part(StepPart::clip);
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
  if (captured_)
    replay_part(StepPart::update);
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
    move_router_biases(buffers_.router_biases, loads(), settings_.bias_rate, norm_and_coefficient_[1]);
  if (groups_.all().size() > 1) return;  // each block's twins are made when its new weights are there
  model_.weights_changed();
  model_.quantise_weights();
}

void Executor::capture_with(std::unique_ptr<StepCapture> capture) {
  TORCH_CHECK(groups_.all().size() == 1, "steps of one rank are captured");
  capture_ = std::move(capture);
  captured_ = refused_ = false;
  steps_before_ = 0;
}

void Executor::forget_captured() {
  if (!capture_) return;
  captured_ = false;
  captured_activations_ = {};
  captured_batch_ = {};
  capture_->forget();
}

std::vector<std::string> Executor::new_notices() { return std::exchange(notices_, {}); }

void Executor::check_capture(const StepInput& input) {
  // Ops that are timed are called one by one.
  if (captured_ && metrics::ops_are_timed()) {
    notices_.push_back("step " + std::to_string(input.step + 1) +
                       " is profiled: it runs op by op, as all steps do until the profile is done");
    forget_captured();
  }
  const auto fit = [&](const Documents& documents) {
    return std::all_of(input.micro_batches.begin(), input.micro_batches.end(), [&](const TokenBatch& batch) {
      return same_sizes(batch.documents.offsets, documents.offsets);
    });
  };
  if (captured_ && !fit(captured_batch_.documents)) return other_slots();
  if (captured_ || refused_ || metrics::ops_are_timed()) return;
  if (steps_before_++ < steps_before_capture || !capture_->ready()) return;
  if (!fit(input.micro_batches.at(0).documents)) return other_slots();
  try {
    capture(input.micro_batches.at(0));
    notices_.push_back("steps from " + std::to_string(input.step + 1) +
                       " on are replayed: forward, backward, clip and update captured as " +
                       capture_->size());
  } catch (const std::exception& error) {
    refused_ = true;
    forget_captured();
    notices_.push_back("steps are not captured, and run as before: " + first_line(error));
  }
}

/// What is captured, or would be, does not serve this step: it runs as it is, so that its bits are those that
/// it has without a capture.
void Executor::other_slots() {
  if (captured_) forget_captured();
  if (++reshaped_ < most_reshaped) return;
  refused_ = true;
  notices_.push_back(
      "steps are not captured from here on: the documents of micro-batches need other numbers of "
      "slots again and again");
}

void Executor::capture(const TokenBatch& first) {
  captured_batch_ = copy_of(first);
  captured_pairs_ = model_.visible_pairs(first);
  parameters_.begin_step(linear::GradientSum::continues);
  capture_part(StepPart::forward, [this] { work_forward(captured_batch_, captured_activations_); });
  capture_part(StepPart::backward,
               [this] { work_backward(captured_batch_, captured_activations_, shares_); });
  capture_part(StepPart::clip, [this] { work_clip(); });
  capture_part(StepPart::update, [this] { work_update(); });
  captured_ = true;
}

void Executor::capture_part(StepPart part, const std::function<void()>& work) {
  const metrics::FlopCounter counter;  // what is captured has not run
  capture_->capture(part, work);
  captured_flops_[static_cast<std::size_t>(part)] = counter.measured();
}

void Executor::replay_part(StepPart part) {
  capture_->replay(part);
  metrics::report(captured_flops_[static_cast<std::size_t>(part)].with_pairs(
      captured_pairs_, model_.visible_pairs(captured_batch_)));
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
  if (routing_.defined())
    result_.routing =
        routing_of(numbers.narrow(0, 4, routing_.numel()).view(routing_.sizes()), settings_.capacity > 0);
  result_.source_losses.assign(number + numbers.numel() - settings_.sources, number + numbers.numel());
}

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
         "it "
         "with parallel.check_replicas_every=1";
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
