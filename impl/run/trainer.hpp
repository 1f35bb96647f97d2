#pragma once
// A run's state between steps: data, buffers, model, executor. One call of `step` is one optimizer step.
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "impl/checkpoint/checkpoint.hpp"
#include "impl/data/loader.hpp"
#include "impl/health/rank_row.hpp"
#include "impl/params/layouts/layout_groups.hpp"
#include "impl/params/layouts/make_parameters.hpp"
#include "impl/run/expert_loads.hpp"
#include "impl/run/state_mark.hpp"
#include "impl/run/validation.hpp"
#include "impl/step/device_staging.hpp"
#include "impl/step/executor.hpp"
#include "spec/batch/batch.hpp"
#include "spec/config/run_config.hpp"
#include "spec/record/event.hpp"

namespace assay::impl::run {

/// What one step did, for the log. The same on every rank but for the times.
struct StepReport {
  /// Of a mixture's source; its loss is in result.source_losses.
  struct Source {
    std::string name;
    std::int64_t tokens = 0, valid_tokens = 0;  ///< of the step, over all ranks
    double epochs = 0;                          ///< that the run has read of it, this step included
  };
  std::int64_t step = 0;  ///< counts from 0
  StepResult result;
  double learning_rate = 0;
  std::int64_t tokens = 0;        ///< over all ranks
  std::int64_t valid_tokens = 0;  ///< over all ranks
  double executed_flops = 0;      ///< matmul FLOPs that ran, over all ranks [flop]
  double seconds = 0;
  PhaseSeconds phases{};
  double waited_for_save = 0;        ///< before it, which `seconds` leaves out [s]
  std::vector<Source> sources = {};  ///< of a mixture
  std::uint64_t sample_hash = 0;     ///< of the step's sample ids in global order
  double dropped_flops = 0;     ///< of tokens * FLOPs per token, those of choices that a capacity dropped
  std::string weights_hash;     ///< of the weights after the step where copies were compared, else empty
  std::string not_finite = {};  ///< rank and tensor where the step was skipped for it, else empty
  bool save = false;            ///< rank 0 asked for a save after it
};

class Trainer {
 public:
  /// `config`: settled on a GPU (impl/run/start/numerics.hpp), so that every step's attention is what is
  /// planned and what the first step's FLOPs are counted with. `loads`: the plan, and what rows of experts
  /// are held to; lives longer; null: the plan of equal loads, and any rows. Allocates everything; weights
  /// are zero until `initialise` or a checkpoint fills `buffers()`.
  Trainer(const spec::RunConfig& config, const spec::ModelSpec& model, const spec::Batch& batch,
          at::Device device, std::shared_ptr<const data::SampleSource> source, Communicator& communicator,
          ExpertLoads* loads = nullptr);

  /// From here on `row`, which must outlive the trainer, holds the step and the phase under way.
  void report_to(Row& row);
  /// Weights from the seed.
  void initialise();
  /// Weights from a folder of Hugging Face's. Errors: those of checkpoint::import_weights.
  spec::record::WeightsFrom import_weights(const std::string& folder);
  /// Everything from a checkpoint. Errors: those of checkpoint::load.
  checkpoint::State load(const std::string& path);
  /// Starts reading data for the step after `steps_done` optimizer steps, of which `skipped` were not finite.
  /// Before `step`, and again to go on after a stop.
  void start_after(std::int64_t steps_done, std::int64_t skipped = 0);
  /// Trains one step. `stop_requested`: this rank was asked to stop. Where any rank was, every rank gets
  /// nothing, and nothing is trained: weights and `steps_done` are those of the step before.
  /// `save_requested`: rank 0's alone counts, and is sent to all ranks. `failed`: an error of this rank alone
  /// since the last step; it ends the step on all ranks. Errors, after which all is as before the step:
  /// NonFiniteError, but for steps that may be skipped (train.on_non_finite); those of the data and `failed`,
  /// on all ranks. AgreedError when ranks have drifted apart.
  std::optional<StepReport> step(bool stop_requested, bool save_requested = false,
                                 std::exception_ptr failed = {});
  /// The steps that weights and moments have come to, whatever error has ended the last one; nothing after
  /// one inside of an update, while a checkpoint is read, and where copies are not the same bits.
  std::optional<std::int64_t> intact_after() const { return intact_; }
  /// The same for other threads, of several ranks.
  const StateMark& mark() const { return *mark_; }
  /// As they are, also in the middle of a step.
  const ParameterBuffers& unsettled_buffers() const { return buffers_; }
  /// Steps of the run that were not finite and changed nothing.
  std::int64_t skipped() const { return skipped_; }

  /// The loss on `set`, between two steps, of which it changes nothing; none where `stop_requested` says,
  /// after a forward pass, that any rank was asked to stop. Collective. Errors: as validation_loss.
  std::optional<ValidationLoss> validate(const data::ValidationSet& set,
                                         const std::function<bool()>& stop_requested);
  ValidationLoss validate(const data::ValidationSet& set) {
    return *validate(set, [] { return false; });
  }

  /// Whole, or this rank's shares; complete between steps.
  const ParameterBuffers& buffers();
  LayoutGroups& groups() { return groups_; }
  /// For other work between steps; what of them was captured is dropped, and its memory free.
  Model& model() {
    executor_.forget_captured();
    if (loads_) loads_->begin(ExpertLoads::Pass::few_tokens, step_);
    return model_;
  }
  /// What became of compute.cuda_graph since the last call, one line each.
  std::vector<std::string> new_notices();
  std::int64_t steps_done() const { return step_; }
  /// Tokens of all ranks in the first `steps` steps.
  std::int64_t tokens_at(std::int64_t steps) const;

 private:
  /// What ranks tell each other before a step.
  struct Asked {
    bool stop = false, save = false;
    std::exception_ptr failed = {};  ///< why this rank cannot go on: it has no batches, for one
  };
  struct Agreed {
    std::int64_t valid_tokens = 0;                    ///< of all ranks
    std::vector<std::int64_t> valid_of_sources = {};  ///< of a mixture, likewise
    bool save = false;                                ///< rank 0 asks for it
  };
  /// Nothing when a rank was asked to stop. Errors: AgreedError when ranks are to train on different samples,
  /// or one cannot go on.
  std::optional<Agreed> agree(const data::StepBatches& batches, const Asked& asked);
  /// Weights and moments are those after so many steps; nothing: they change from here on.
  void state_is(const std::optional<std::int64_t>& steps);
  void act_on(std::int64_t micro_batches);
  void reserve_memory(const spec::memory::Plan& plan);
  std::vector<StepReport::Source> sources_of(const Agreed& agreed) const;
  /// The executor's step, or that it was skipped.
  void run_or_skip(const StepInput& input, StepReport& report);
  /// The hash of the weights where this step is one after which copies are compared, else nothing. Errors:
  /// AgreedError(bug) that names the ranks that hold others.
  std::string compare_copies();
  /// The executor's step. Counts what it runs where that is not known to be what the step before ran.
  StepResult run_and_count(const StepInput& input);
  double not_executed(const metrics::MeasuredFlops& counted, const StepResult& result) const;

  const spec::RunConfig config_;
  const spec::ModelSpec model_spec_;
  const spec::ModelSpec rank_model_;  ///< what this tensor rank computes of it
  const spec::Batch batch_;
  const at::Device device_;
  const std::unique_ptr<Communicator> traced_;  ///< in front of the one given, where steps are profiled
  Communicator& communicator_;
  std::shared_ptr<const data::SampleSource> source_;
  const spec::data::SampleOrder order_;  ///< of the samples
  const spec::Place place_;
  LayoutGroups groups_;
  ParameterBuffers buffers_;
  const std::unique_ptr<ParameterLayout> parameters_;
  Model model_;
  PhaseClock clock_;
  Executor executor_;
  std::int64_t micro_batches_ = 0;  ///< that actions_ are of
  std::vector<spec::Action> actions_;
  std::unique_ptr<DeviceStaging> staging_;
  std::unique_ptr<data::Loader> loader_;  ///< its thread fills staging_
  std::int64_t step_ = 0, skipped_ = 0;
  std::optional<std::int64_t> intact_;
  std::optional<StateMark> mark_;            ///< of several ranks
  std::optional<std::string> not_captured_;  ///< why steps are not captured, until a warning has said it
  Row* row_ = nullptr;
  ExpertLoads* const loads_;
  std::optional<double> executed_flops_;  ///< of the last step that was counted, over all ranks
};

/// The order in which a run reads its samples.
data::LoaderPlan loader_plan(const spec::RunConfig& config, const spec::Batch& batch, std::int64_t rank,
                             std::int64_t start_step);

/// The layout of a run over the ranks of `communicator`. Collective. Errors: spec::layout_on's.
spec::Layout layout_of(const spec::RunConfig& config, Communicator& communicator);

/// The learning rate schedule of a run.
spec::Schedule schedule_of(const spec::RunConfig& config);

}  // namespace assay::impl::run
