#include "impl/run/trainer.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <iterator>
#include <span>
#include <utility>

#include "impl/checkpoint/import_weights.hpp"
#include "impl/comm/refusal.hpp"
#include "impl/comm/traced_communicator.hpp"
#include "impl/machine/host.hpp"
#include "impl/metrics/executed_flops.hpp"
#include "impl/ops/grouped_linear/grouped_linear.hpp"
#include "impl/params/replica_hash.hpp"
#include "impl/params/step_arena.hpp"
#include "impl/run/start/host_ranks.hpp"
#include "impl/run/start/memory_limits.hpp"
#include "spec/config/division.hpp"
#include "spec/data/sample_order.hpp"

namespace assay::impl::run {

namespace {
StepSettings settings_of(const spec::RunConfig& config) {
  return {.adamw = {.beta1 = config.beta1,
                    .beta2 = config.beta2,
                    .eps = config.adam_eps,
                    .weight_decay = config.weight_decay,
                    .seed = config.seed},
          .clip = config.clip,
          .z_loss = config.z_loss,
          .balance = config.balance,
          .router_z = config.router_z,
          .balance_of_batch = config.balance_over == spec::load_balancing::Form::running,
          .bias_rate = config.bias_rate,
          .sources = std::ssize(config.mixture),
          .capacity = config.capacity};
}
}  // namespace

data::LoaderPlan loader_plan(const spec::RunConfig& config, const spec::Batch& batch, std::int64_t rank,
                             std::int64_t start_step) {
  data::LoaderPlan plan{.seed = config.seed,
                        .sequences = batch.sequences,
                        .split = {.micro = batch.micro, .ranks = batch.ranks},
                        .rank = rank,
                        .start_step = start_step,
                        .prefetch = config.prefetch,
                        .end_of_document = {},
                        .held_out = config.eval_share,
                        .ramp = config.ramp,
                        .mixture = spec::mixture_of(config)};
  if (config.end_of_document >= 0) plan.end_of_document = config.end_of_document;
  return plan;
}

spec::Layout layout_of(const spec::RunConfig& config, Communicator& communicator) {
  return spec::layout_on(config, {.all = communicator.size(), .per_host = host_ranks(communicator).each});
}

spec::Schedule schedule_of(const spec::RunConfig& config) {
  return {.kind = config.schedule,
          .peak = config.learning_rate,
          .steps = config.steps,
          .warmup_steps = config.warmup_steps,
          .decay_steps = config.schedule == spec::ScheduleKind::wsd ? config.decay_steps : 0,
          .final_ratio = config.final_lr_ratio,
          .decay_shape = config.decay_shape};
}

Trainer::Trainer(const spec::RunConfig& config, const spec::ModelSpec& model, const spec::Batch& batch,
                 at::Device device, std::shared_ptr<const data::SampleSource> source,
                 Communicator& communicator, ExpertLoads* loads)
    : config_(config),
      model_spec_(model),
      rank_model_(spec::tensor_model(model, config.tensor_ranks)),
      batch_(batch),
      device_(device),
      traced_(config.profile.on() && communicator.size() > 1 ? make_traced_communicator(communicator)
                                                             : nullptr),
      communicator_(traced_ ? *traced_ : communicator),
      source_(std::move(source)),
      order_(data::sample_order(loader_plan(config, batch, 0, 0), *source_)),
      place_{.layout = layout_of(config, communicator_),
             .tensor_ranks = config.tensor_ranks,
             .expert_ranks = config.expert_ranks,
             .rank = communicator_.rank()},
      groups_(communicator_, spec::groups_of(model, place_)),
      buffers_(allocate(model, config.dtype, device, config.states, place_)),
      parameters_(make_parameters(
          buffers_, rank_model_, groups_,
          config.dtype == Dtype::bf16 ? scalar_type(config.reduce) : buffers_.gradients.scalar_type(),
          spec::linear_precision(config, model))),
      model_(rank_model_, *parameters_, config.sequence_length, scalar_type(config.dtype), device,
             config.recompute, spec::linear_precision(config, model),
             {.ranks = config.tensor_ranks > 1 ? &groups_.tensor() : nullptr, .vocab = model.vocab},
             &groups_.expert()),
      clock_(device),
      executor_(model_, buffers_, *parameters_, groups_, settings_of(config), clock_),
      loads_(loads) {
  model_.attend_by(config.attention);
  if (loads_) model_.on_arrival([this](std::int64_t layer, double load) { loads_->arrived(layer, load); });
  not_captured_ = reason_against_graph(config.cuda_graph, device, communicator.size());
  if (communicator_.size() > 1) mark_.emplace(device);
  executor_.on_update([this](bool ended) { state_is(ended ? std::optional(step_ + 1) : std::nullopt); });
  if (config.cuda_graph && !not_captured_)
    executor_.capture_with(make_cuda_graphs(device));  // whose memory is a pool of its own
  else if (device.is_cuda())
    reserve_memory(loads_ ? loads_->plan() : memory_plan(config, model, batch, device, groups_.layout()));
}

/// Of uneven loads as much as there is; of equal ones all.
void Trainer::reserve_memory(const spec::memory::Plan& plan) {
  spec::memory::Setting equal = plan.setting;
  equal.load = std::min(equal.load, 1.0);
  const std::int64_t there = device_allocated_bytes(device_);
  reserve_step_arena(device_, plan.peak.to_int64() - there,
                     spec::memory::plan(equal).peak.to_int64() - there);
}

void Trainer::report_to(Row& row) {
  static_assert(static_cast<int>(Doing::data_wait) == static_cast<int>(Phase::data_wait) &&
                    static_cast<int>(Doing::other) == static_cast<int>(Phase::other),
                "a rank's work is counted as the phases are");
  row_ = &row;
  clock_.on_enter([&row](Phase phase) { row.enter(static_cast<Doing>(phase)); });
}

void Trainer::initialise() {
  impl::initialise(buffers_, model_spec_, config_.seed);
  parameters_->weights_changed();
  model_.weights_changed();
}

spec::record::WeightsFrom Trainer::import_weights(const std::string& folder) {
  spec::record::WeightsFrom from = checkpoint::import_weights(folder, model_spec_, buffers_, communicator_);
  parameters_->weights_changed();
  model_.weights_changed();
  return from;
}

checkpoint::State Trainer::load(const std::string& path) {
  executor_.forget_captured();  // which would go on with twins of the weights before
  state_is({});
  checkpoint::State state = checkpoint::load(path, buffers_, groups_);
  parameters_->weights_changed();
  model_.weights_changed();
  return state;
}

const ParameterBuffers& Trainer::buffers() {
  parameters_->settle_weights();
  return buffers_;
}

std::vector<std::string> Trainer::new_notices() {
  std::vector<std::string> lines = executor_.new_notices();
  if (const auto reason = std::exchange(not_captured_, {})) lines.push_back(*reason);
  return lines;
}

void Trainer::start_after(std::int64_t steps_done, std::int64_t skipped) {
  step_ = steps_done;
  skipped_ = skipped;
  state_is(step_);
  loader_.reset();
  staging_ = std::make_unique<DeviceStaging>(device_, config_.prefetch);
  loader_ =
      std::make_unique<data::Loader>(source_, loader_plan(config_, batch_, groups_.batch().rank(), step_),
                                     [this](const data::StepBatches& batches) { staging_->stage(batches); });
}

void Trainer::state_is(const std::optional<std::int64_t>& steps) {
  intact_ = steps;
  if (mark_) mark_->is(steps ? std::optional(WholeState{.step = *steps, .skipped = skipped_}) : std::nullopt);
}

/// Of the micro-batches of a step; what it runs is counted anew where their number changes.
void Trainer::act_on(std::int64_t micro_batches) {
  if (micro_batches == micro_batches_) return;
  micro_batches_ = micro_batches;
  executed_flops_.reset();
  actions_ = spec::step_actions(micro_batches, groups_.reduced());
  spec::check_actions(actions_, micro_batches, groups_.reduced());
}

std::int64_t Trainer::tokens_at(std::int64_t step) const {
  return (Count(spec::sequences_before(order_.batch(), step)) * config_.sequence_length).to_int64();
}

std::optional<StepReport> Trainer::step(bool stop_requested, bool save_requested, std::exception_ptr failed) {
  if (row_) row_->begin_step(step_ + 1);
  clock_.restart();
  clock_.enter(Phase::data_wait);
  Asked asked{.stop = stop_requested, .save = save_requested, .failed = std::move(failed)};
  data::StepBatches batches;
  try {
    if (!asked.failed) batches = loader_->next();
  } catch (const std::exception&) {
    asked.failed = std::current_exception();  // the other ranks would wait for this one
  }
  const std::int64_t tokens = tokens_at(step_ + 1) - tokens_at(step_);
  StepInput input{.step = step_,
                  .learning_rate = spec::learning_rate(schedule_of(config_), step_),
                  .valid_tokens = 0,
                  .micro_batches = {},
                  .tokens = static_cast<double>(tokens),
                  .skipped = skipped_};
  if (!asked.failed) input.micro_batches = staging_->take(batches);
  clock_.enter(Phase::reduce);
  const auto agreed = agree(batches, asked);
  if (!agreed) return std::nullopt;
  input.valid_tokens = static_cast<double>(agreed->valid_tokens);
  if (agreed->valid_tokens == 0)
    throw AgreedError(ExitCode::bad_data,
                      "step " + std::to_string(step_ + 1) +
                          " has no valid target in any sequence: the loss would be 0/0; look at the data");

  StepReport report{.step = step_,
                    .result = {},
                    .learning_rate = input.learning_rate,
                    .tokens = tokens,
                    .valid_tokens = agreed->valid_tokens,
                    .executed_flops = 0,
                    .seconds = 0,
                    .phases = {},
                    .sources = sources_of(*agreed),
                    .sample_hash = batches.sample_hash,
                    .dropped_flops = 0,
                    .weights_hash = {},
                    .not_finite = {},
                    .save = agreed->save};
  act_on(std::ssize(input.micro_batches));
  run_or_skip(input, report);
  report.weights_hash = compare_copies();
  if (const auto& routing = report.result.routing; routing && routing->dropped)
    report.dropped_flops = *routing->dropped * static_cast<double>(report.tokens) *
                           spec::exact_flops(model_spec_, config_.sequence_length)
                               .of(spec::FlopComponent::routed_experts)
                               .to_double() /
                           static_cast<double>(config_.sequence_length);
  report.phases = clock_.seconds();
  for (double seconds : report.phases) report.seconds += seconds;
  if (row_) row_->end_step(report.seconds);
  state_is(++step_);
  return report;
}

std::optional<ValidationLoss> Trainer::validate(const data::ValidationSet& set,
                                                const std::function<bool()>& stop_requested) {
  if (loads_) loads_->begin(ExpertLoads::Pass::validation, step_);
  return validation_loss(model_, set, groups_, device_, [&] {
    if (row_) row_->tick();
    const at::Tensor asked = at::full({1}, stop_requested() ? 1 : 0, at::kLong);
    communicator_.all_reduce_max(asked);
    return asked.item<std::int64_t>() == 0;
  });
}

std::vector<StepReport::Source> Trainer::sources_of(const Agreed& agreed) const {
  std::vector<StepReport::Source> out;
  if (config_.mixture.empty()) return out;
  const auto before = spec::data::read_before(order_, step_),
             then = spec::data::read_before(order_, step_ + 1);
  for (std::size_t k = 0; k < before.size(); ++k)
    out.push_back(
        {.name = config_.mixture[k].name,
         .tokens = (then[k] - before[k]) * config_.sequence_length,
         .valid_tokens = agreed.valid_of_sources[k],
         .epochs = static_cast<double>(then[k]) / static_cast<double>(order_.of_sources[k].trained())});
  return out;
}

void Trainer::run_or_skip(const StepInput& input, StepReport& report) {
  if (loads_) loads_->begin(ExpertLoads::Pass::step, step_ + 1);
  try {
    report.result = run_and_count(input);
    report.executed_flops = executed_flops_.value();
  } catch (const NonFiniteError& error) {
    state_is(step_);  // the update changed nothing
    if (config_.on_non_finite == spec::OnNonFinite::stop) throw;
    if (skipped_ >= config_.max_skipped)
      throw NonFiniteError(std::string(error.what()) + "; train.max_skipped = " +
                               std::to_string(config_.max_skipped) + " steps were skipped before it",
                           error.reason(), error.result());
    ++skipped_;
    report.result = error.result();
    report.not_finite = error.reason();
  }
}

std::optional<Trainer::Agreed> Trainer::agree(const data::StepBatches& batches, const Asked& asked) {
  // One small reduction of host numbers, by Gloo also where GPUs train (docs/many-gpus.md, "Before each
  // step"): NCCL's one stream may still gather weights for this step, which the host would then
  // wait for. The sums of the cut hash and of its square say whether the samples are the same everywhere.
  const std::int64_t cut = spec::data::cut_hash(batches.sample_hash);
  constexpr std::int64_t numbers = 6;
  const std::int64_t sources = std::ssize(config_.mixture);
  const at::Tensor agreed = at::zeros({numbers + sources}, at::kLong);
  auto* number = agreed.data_ptr<std::int64_t>();
  if (groups_.ranks().counts_tokens())
    for (const data::MicroBatch& batch : batches.micro_batches) {
      number[0] += batch.valid_tokens;
      data::add_valid_of_sources(batch, std::span(number + numbers, static_cast<std::size_t>(sources)));
    }
  number[1] = asked.stop ? 1 : 0;
  number[2] = cut;
  number[3] = cut * cut;
  number[4] = asked.save && communicator_.rank() == 0 ? 1 : 0;
  number[5] = asked.failed ? 1 : 0;
  communicator_.all_reduce_sum(agreed);
  if (number[5] > 0)
    refuse_together(communicator_, [&] {
      if (asked.failed) std::rethrow_exception(asked.failed);
    });
  if (!spec::data::all_the_same(number[2], number[3], communicator_.size())) {
    std::string hashes;
    for (const std::string& hash : communicator_.all_gather(std::to_string(batches.sample_hash)))
      hashes += (hashes.empty() ? "" : ", ") + hash;
    throw AgreedError(ExitCode::bug, "step " + std::to_string(step_ + 1) +
                                         ": ranks would train on the samples of different orders; the hashes "
                                         "of the step's samples, from rank 0 on, are " +
                                         hashes);
  }
  if (number[1] > 0) return {};
  return Agreed{.valid_tokens = number[0],
                .valid_of_sources = {number + numbers, number + numbers + sources},
                .save = number[4] > 0};
}

std::string Trainer::compare_copies() {
  const std::int64_t every = config_.check_replicas_every;
  if (every == 0 || (step_ + 1) % every != 0) return "";
  clock_.enter(Phase::other);
  const ReplicaCheck check = compare_replicas(buffers(), groups_);
  if (check.odd.empty()) return check.hash;
  state_is({});
  throw AgreedError(ExitCode::bug,
                    "after step " + std::to_string(step_ + 1) + " the weights of " + check.odd +
                        " are not the same bits as the other ranks' (parallel.check_replicas_every): memory "
                        "or a link of that device is at fault, or this program is; resume from a checkpoint "
                        "before it, without that device");
}

/// FLOPs that were counted for rows that a capacity dropped, where the GPU alone knows how many there are.
double Trainer::not_executed(const metrics::MeasuredFlops& counted, const StepResult& result) const {
  if (!result.routing || !result.routing->dropped) return 0;
  const std::int64_t G = model_spec_.experts->width;
  if (!grouped_linear::rows_known_on_device_alone(device_, scalar_type(config_.dtype), model_spec_.width, G))
    return 0;
  Count rows;
  for (std::size_t pass = 0; pass < spec::executed_passes; ++pass)
    rows += counted.at(spec::FlopComponent::routed_experts, static_cast<spec::ExecutedPass>(pass));
  return *result.routing->dropped * rows.to_double();
}

StepResult Trainer::run_and_count(const StepInput& input) {
  // All micro-batches have one shape and attention one backend, so every step runs the same FLOPs, but for
  // attention within documents and for rows that a capacity drops.
  const bool documents_differ = spec::has_documents(config_);
  if (executed_flops_ && !documents_differ && config_.capacity == 0) return executor_.run(input, actions_);
  const metrics::FlopCounter counter;
  StepResult result = executor_.run(input, actions_);
  const at::Tensor executed = at::full(
      {1}, counter.measured().total().to_double() - not_executed(counter.measured(), result), at::kDouble);
  communicator_.all_reduce_sum(executed);
  executed_flops_ = executed.item<double>();
  return result;
}

}  // namespace assay::impl::run
