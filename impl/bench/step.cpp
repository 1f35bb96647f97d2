#include "impl/bench/step.hpp"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cmath>

#include "impl/bench/measure.hpp"
#include "impl/comm/communicator.hpp"
#include "impl/data/open_source.hpp"
#include "impl/machine/device_choice.hpp"
#include "impl/machine/host.hpp"
#include "impl/metrics/op_times.hpp"
#include "impl/ops/attention/attention.hpp"
#include "impl/ops/determinism.hpp"
#include "impl/run/start/memory_limits.hpp"
#include "impl/run/start/numerics.hpp"
#include "impl/run/trainer.hpp"
#include "spec/config/check.hpp"
#include "spec/flops/exact.hpp"
#include "spec/model/hugging_face.hpp"
#include "spec/plan/plan.hpp"
#include "spec/step/paper/run.hpp"
#include "spec/text/quantity.hpp"

namespace assay::impl::bench {
namespace {

using spec::time::MeasuredStep;

/// Scores and values, both passes.
double attention_flops(const spec::FlopBreakdown& flops) {
  return (flops.of(spec::FlopComponent::attention_scores) + flops.of(spec::FlopComponent::attention_values))
      .to_double();
}

constexpr int most_retries = 5;

bool adds_up(const MeasuredStep& step) {
  double sum = step.between;
  for (const auto& part : step.parts) sum += part.seconds;
  return std::abs(sum - step.seconds) <= spec::time::waterfall_tolerance * step.seconds;
}

/// The trainer of a run without a record.
class StepRuns {
 public:
  StepRuns(const spec::RunConfig& config, const spec::ModelSpec& model, const spec::Batch& batch,
           at::Device device, const std::function<void(const std::string&)>& say)
      : communicator_(make_self_communicator()),
        trainer_(config, model, batch, device, data::open_source(config, model), *communicator_),
        say_(say) {
    trainer_.initialise();
    trainer_.start_after(0);
  }

  double plain() { return reported(trainer_.step(false).value()).seconds; }

  MeasuredStep apart(metrics::OpClock& clock) {
    clock.restart();
    const run::StepReport report = trainer_.step(false).value();
    const metrics::OpTimes times = clock.times();
    reported(report);
    return {.seconds = report.seconds,
            .parts = times.parts,
            .between = times.between,
            .data_wait = report.phases[static_cast<std::size_t>(run::Phase::data_wait)]};
  }
  double executed_flops() const { return executed_; }

 private:
  const run::StepReport& reported(const run::StepReport& report) {
    executed_ = report.executed_flops;
    say_("step " + std::to_string(report.step + 1) + ": loss " + spec::fixed(report.result.cross_entropy, 4) +
         ", " + spec::fixed(report.seconds * 1e3, 2) + " ms");
    for (const std::string& line : attention::new_choices()) say_(line);
    for (const std::string& line : trainer_.new_notices()) say_(line);
    last_ = report;
    return last_;
  }

  std::unique_ptr<Communicator> communicator_;
  run::Trainer trainer_;
  const std::function<void(const std::string&)>& say_;
  run::StepReport last_;
  double executed_ = 0;
};

StepTimes measured(const spec::RunConfig& config, const spec::ModelSpec& model, const spec::Batch& batch,
                   at::Device device, std::int64_t steps,
                   const std::function<void(const std::string&)>& say) {
  StepRuns runs(config, model, batch, device, say);
  // On a GPU libraries make their plans in the first step, and capture comes after two.
  const std::int64_t warm = device.is_cuda() ? std::max<std::int64_t>(4, steps) : steps;
  for (std::int64_t step = 0; step < warm; ++step) runs.plain();
  std::vector<double> plain;
  for (std::int64_t step = 0; step < steps; ++step) plain.push_back(runs.plain());
  std::vector<MeasuredStep> apart;
  {
    metrics::OpClock clock(device);
    for (std::int64_t step = 0; step < steps; ++step) {
      apart.push_back(runs.apart(clock));
      // On a machine with other work this process may be put aside between the last readings of the two
      // clocks.
      for (int again = 0; again < most_retries && !adds_up(apart.back()); ++again)
        apart.back() = runs.apart(clock);
    }
  }
  std::sort(plain.begin(), plain.end());
  std::sort(apart.begin(), apart.end(),
            [](const MeasuredStep& a, const MeasuredStep& b) { return a.seconds < b.seconds; });
  StepTimes out;
  const spec::memory::Setting setting = setting_of(
      config, model, batch, device.is_cuda() ? spec::memory::Machine::cuda : spec::memory::Machine::cpu);
  out.subject = subject_of({.setting = setting, .device = device, .patience = {}});
  out.sequences = batch.sequences;
  out.steps = steps;
  out.plain_seconds = plain[plain.size() / 2];
  out.step = apart[apart.size() / 2];
  out.counts = spec::paper::step_ops(setting);
  const spec::FlopBreakdown exact = spec::exact_flops(model, config.sequence_length);
  const auto sequences = static_cast<double>(batch.sequences);
  out.exact_flops = sequences * exact.per_sequence().to_double();
  out.executed_flops = runs.executed_flops();
  const double attention = sequences * attention_flops(exact);
  out.waterfall = spec::time::waterfall(
      out.step,
      {.gemms = out.exact_flops - attention, .attention = attention, .peak = out.subject.ceiling.peak});
  return out;
}

}  // namespace

StepTimes measure_step(const spec::RunConfig& asked, std::int64_t steps,
                       const std::function<void(const std::string&)>& say) {
  const c10::InferenceMode no_autograd;
  const at::Device device = run::choose_device(asked.device).device;
  const spec::RunConfig config = spec::with_dtype_of(asked, device.is_cuda());
  if (asked.dtype_of_machine) spec::check(config);
  spec::ModelSpec model = spec::find_model_to_train(config.model, config.sequence_length).model;
  if (config.init_std > 0) model.init_std = config.init_std;
  const spec::Batch batch = spec::batch_of(config.sequences, config.micro, 1);
  run::reason_against_graph(config.cuda_graph, device, 1);  // refuses it on the CPU
  run::refuse_fp8(config, model, batch, device);
  spec::RunConfig unsampled = config;
  unsampled.sample_sentences = 0;
  const auto alone = make_self_communicator();
  unsampled =
      run::settle_numerics(unsampled, model, batch, device, run::layout_of(config, *alone), *alone).config;
  set_deterministic(unsampled.deterministic == spec::Determinism::on);
  run::refuse_what_cannot_fit(run::memory_plan(unsampled, model, batch, device), unsampled, model, batch,
                              run::machine_memory(device, *alone));
  if (config.threads > 0) at::set_num_threads(static_cast<int>(config.threads));
  try {
    return measured(unsampled, model, batch, device, steps, say);
  } catch (const std::exception& error) {
    if (const auto memory = run::out_of_memory(error, batch, device)) throw *memory;
    throw;
  }
}

}  // namespace assay::impl::bench
