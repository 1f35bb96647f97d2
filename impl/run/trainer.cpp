#include "impl/run/trainer.hpp"

#include <ATen/ATen.h>

#include "impl/metrics/executed_flops.hpp"

namespace assay::impl::run {

namespace {
StepSettings settings_of(const spec::RunConfig& config) {
  return {.adamw = {.beta1 = config.beta1,
                    .beta2 = config.beta2,
                    .eps = config.adam_eps,
                    .weight_decay = config.weight_decay,
                    .seed = config.seed},
          .clip = config.clip,
          .z_loss = config.z_loss};
}
}  // namespace

data::LoaderPlan loader_plan(const spec::RunConfig& config, const spec::Batch& batch, std::int64_t rank,
                             std::int64_t start_step) {
  data::LoaderPlan plan{.seed = config.seed,
                        .sequences = batch.sequences,
                        .deal = {.micro = batch.micro, .ranks = batch.ranks},
                        .rank = rank,
                        .start_step = start_step,
                        .prefetch = config.prefetch,
                        .end_of_document = {}};
  if (config.end_of_document >= 0) plan.end_of_document = config.end_of_document;
  return plan;
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
                 Communicator& communicator)
    : config_(config),
      model_spec_(model),
      batch_(batch),
      device_(device),
      communicator_(communicator),
      source_(std::move(source)),
      buffers_(allocate(model, config.dtype, device, config.states)),
      parameters_(buffers_, model, communicator),
      model_(model, parameters_, config.sequence_length, scalar_type(config.dtype), device, config.recompute),
      clock_(device),
      executor_(model_, buffers_, parameters_, communicator, settings_of(config), clock_),
      actions_(spec::step_actions(batch.accumulation, batch.ranks)) {
  spec::check_actions(actions_, batch.accumulation, batch.ranks);
}

void Trainer::initialise() { impl::initialise(buffers_, model_spec_, config_.seed); }

void Trainer::start_after(std::int64_t steps_done) {
  step_ = steps_done;
  loader_.reset();
  staging_ = std::make_unique<DeviceStaging>(device_, config_.prefetch);
  loader_ =
      std::make_unique<data::Loader>(source_, loader_plan(config_, batch_, communicator_.rank(), step_),
                                     [this](const data::StepBatches& batches) { staging_->stage(batches); });
}

std::optional<StepReport> Trainer::step(bool stop_requested) {
  clock_.restart();
  clock_.enter(Phase::data_wait);
  const data::StepBatches batches = loader_->next();
  StepInput input{.step = step_,
                  .learning_rate = spec::learning_rate(schedule_of(config_), step_),
                  .valid_tokens = 0,
                  .micro_batches = staging_->take(batches)};
  // One small reduction tells every rank the global count of valid tokens, and whether any rank was asked to
  // stop.
  const at::Tensor agreed = at::zeros({2}, at::kLong);
  for (const data::MicroBatch& batch : batches.micro_batches) agreed[0] += batch.valid_tokens;
  agreed[1] = stop_requested ? 1 : 0;
  clock_.enter(Phase::reduce);
  communicator_.all_reduce_sum(agreed);
  if (agreed[1].item<std::int64_t>() > 0) return std::nullopt;
  input.valid_tokens = static_cast<double>(agreed[0].item<std::int64_t>());
  if (input.valid_tokens == 0)
    throw UserError(ExitCode::bad_data,
                    "step " + std::to_string(step_ + 1) +
                        " has no valid target in any sequence: the loss would be 0/0; look at the data");

  StepReport report{.step = step_,
                    .result = run_and_count(input),
                    .learning_rate = input.learning_rate,
                    .tokens = batch_.tokens_per_step(config_.sequence_length).to_int64(),
                    .valid_tokens = agreed[0].item<std::int64_t>(),
                    .executed_flops = executed_flops_.value(),
                    .seconds = 0,
                    .phases = clock_.seconds(),
                    .sample_hash = batches.sample_hash};
  for (double seconds : report.phases) report.seconds += seconds;
  ++step_;
  return report;
}

StepResult Trainer::run_and_count(const StepInput& input) {
  // Micro-batches have one shape, so that each step runs the same products, but for attention's over
  // documents.
  const bool documents_differ = config_.end_of_document >= 0;
  if (executed_flops_ && !documents_differ) return executor_.run(input, actions_);
  const metrics::FlopCounter counter;
  const StepResult result = executor_.run(input, actions_);
  const at::Tensor executed = at::full({1}, counter.measured().total().to_double(), at::kDouble);
  communicator_.all_reduce_sum(executed);
  executed_flops_ = executed.item<double>();
  return result;
}

}  // namespace assay::impl::run
