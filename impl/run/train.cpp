#include "impl/run/train.hpp"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <thread>
#include <utility>

#include "impl/checkpoint/checkpoint.hpp"
#include "impl/checkpoint/disk_space.hpp"
#include "impl/data/open_source.hpp"
#include "impl/machine/device_choice.hpp"
#include "impl/machine/host.hpp"
#include "impl/ops/attention/attention.hpp"
#include "impl/ops/determinism.hpp"
#include "impl/run/last_words.hpp"
#include "impl/run/run_log.hpp"
#include "impl/run/sample_text.hpp"
#include "impl/run/saving.hpp"
#include "impl/run/start/copy_choice.hpp"
#include "impl/run/start/describe.hpp"
#include "impl/run/start/host_ranks.hpp"
#include "impl/run/start/memory_limits.hpp"
#include "impl/run/start/numerics.hpp"
#include "impl/run/start/on_ranks.hpp"
#include "impl/run/start/pinned_algorithms.hpp"
#include "impl/run/start/run_folder.hpp"
#include "impl/run/start/start_agreement.hpp"
#include "impl/run/step_event.hpp"
#include "impl/run/stop_signal.hpp"
#include "impl/run/trainer.hpp"
#include "impl/run/warnings.hpp"
#include "spec/config/check.hpp"
#include "spec/config/dump.hpp"
#include "spec/config/keys.hpp"
#include "spec/config/load.hpp"
#include "spec/error.hpp"
#include "spec/grammar/demo_grammar.hpp"
#include "spec/grammar/judge.hpp"

namespace assay::impl::run {

namespace {

using namespace spec::record;

/// Ranks on this host share its cores.
void use_threads(const spec::RunConfig& config, Communicator& communicator) {
  const std::int64_t sharing = host_ranks(communicator).here;
  const auto cores = static_cast<std::int64_t>(std::thread::hardware_concurrency());
  const std::int64_t threads =
      config.threads > 0 ? config.threads : std::max<std::int64_t>(1, cores / sharing);
  at::set_num_threads(static_cast<int>(threads));
}

/// One start of the program, from the first event of the record to the last.
class Run {
 public:
  /// `watching`: where there are several ranks.
  Run(const spec::RunConfig& config, Communicator& communicator, const DeviceChoice& choice,
      Progress& progress, Watching* watching)
      : config_(config),
        communicator_(communicator),
        progress_(progress),
        watching_(watching),
        model_(model_of(config)),
        batch_(spec::batch_of(config.sequences, config.micro, communicator.size())),
        choice_(choice),
        device_(choice.device),
        source_(data::open_source(config, model_)),
        resume_from_(resume_path(config)) {}

  ~Run() {
    if (!watching_) return;
    watching_->record_by({}, {});
    watching_->warn_by({});
  }

  const std::string& folder() const { return config_.directory; }

  /// Whether this start of the program has written to the record.
  bool recorded() const { return log_.opened(); }

  int train() {
    const attention::Forced asked(config_.attention, device_);                // refuses a GPU's on the CPU
    reason_against_graph(config_.cuda_graph, device_, communicator_.size());  // refuses it on the CPU
    const spec::Layout layout = layout_of(config_, communicator_);
    refuse_copies(config_, layout, device_, communicator_);
    numerics_ = settle_numerics(config_, model_, batch_, device_, layout, communicator_);
    const attention::Forced settled(numerics_.config.attention, device_);
    set_deterministic(numerics_.config.deterministic == spec::Determinism::on);
    memory_plan_ = memory_plan(numerics_.config, model_, batch_, device_, layout);
    refuse_on_all_ranks(memory_plan_, config_, batch_, machine_memory(device_, communicator_), communicator_);
    // Before the record is opened: a refused resume must leave no trace in the record of the run it named.
    if (!resume_from_.empty()) {
      resumed_ = checkpoint::read_state(resume_from_);
      extended_ = refuse_other_settings(config_, *resumed_, resume_from_);
    }
    if (communicator_.size() > 1)
      require_agreement(start_facts(config_, *source_, resume_from_), communicator_);
    if (resumed_ && resumed_->step >= config_.steps) return tell_complete();
    use_threads(config_, communicator_);
    RunStart start = describe({config_, model_, batch_, device_, *source_, memory_plan_}, communicator_);
    const auto disk = look_at_disk();
    // Last, so that a run whose settings or data are refused leaves no folder behind.
    config_.directory = run_directory(config_, communicator_);
    start.settings = spec::settings(config_);
    log_.begin(std::move(start), config_.directory);
    if (communicator_.rank() == 0) log_.open(config_.log_every);
    if (watching_)
      watching_->record_by([this](const std::string& text) { log_.record_lost_rank(text); },
                           [directory = config_.directory] { return way_to_go_on(directory); });
    if (watching_ && log_.opened())
      watching_->warn_by([this](const std::string& text, bool aloud) {
        log_.say(Warning{.step = {}, .code = "slow_rank", .text = text}, aloud);
      });
    const StopSignal stop;  // before the run is known to anyone who could stop it
    try {
      log_.say(log_.start());
      if (const auto doubt = source_->doubt()) log_.say(Warning{.step = {}, .code = "data", .text = *doubt});
      if (choice_.notice) log_.say(Warning{.step = {}, .code = "gpu", .text = *choice_.notice});
      for (const Warning& note : numerics_.notes) log_.say(note);
      log_.warn(numa_warning(log_.start()));
      if (disk) log_.say(Warning{.step = {}, .code = "disk_space", .text = *disk});
      if (const char* drill = std::getenv("ASSAY_FAULT_DRILL"))
        log_.say(Warning{.step = {}, .code = "drill", .text = std::string("a fault is planted: ") + drill});
      return train_steps(stop);
    } catch (const std::exception& error) {
      await_verdict_on(error);
      const auto memory = out_of_memory(error, batch_, device_);
      log_.record_failure(memory ? *memory : error);
      if (memory) throw *memory;
      throw;
    }
  }

 private:
  static spec::ModelSpec model_of(const spec::RunConfig& config) {
    spec::ModelSpec model = spec::find_model(config.model);
    if (config.init_std > 0) model.init_std = config.init_std;
    spec::check(config, model);
    return model;
  }

  /// The run that is to be continued has done all its steps: nothing is written.
  int tell_complete() const {
    if (communicator_.rank() == 0)
      std::cerr << resume_from_ << ": this run is complete: step " << resumed_->step << " of "
                << config_.steps << " is done; nothing was trained or written\n"
                << "to go on, give it more steps: train.steps=" << 2 * config_.steps
                << " (the learning rate then follows the longer schedule)" << std::endl;
    return static_cast<int>(ExitCode::done);
  }

  /// Rank 0 writes, so rank 0 looks.
  std::optional<std::string> look_at_disk() const {
    if (communicator_.rank() != 0) return {};
    return check_disk(config_, model_, resumed_ ? resumed_->step : 0);
  }

  int train_steps(const StopSignal& stop) {
    if (device_.is_cuda() && deterministic())
      pins_.emplace(algorithms_here(device_, log_.start().attention.value_or("")), cuda::gemm_pins(),
                    communicator_);
    if (pins_) warn_of_algorithms(pins_->begin(resume_from_));
    trainer_.emplace(numerics_.config, model_, batch_, device_, source_, communicator_);
    trainer_->report_to(progress_);
    Saving saving(config_, trainer_->groups(), [this](const Event& event) { log_.say(event); });
    saving.on_piece([this] { progress_.tick(); });
    if (resume_from_.empty()) {
      trainer_->initialise();
      trainer_->start_after(0);
    } else {
      const checkpoint::State state = trainer_->load(resume_from_);
      trainer_->start_after(state.step);
      log_.say(ResumeFrom{.step = state.step, .path = resume_from_});
      if (extended_)
        log_.say(
            longer_schedule_warning(spec::load_dump(resumed_->config, resume_from_), config_, state.step));
    }
    std::optional<LastWords> last_words;
    // The watch knows more, and needs a moment; mpirun gives a second between SIGTERM and SIGKILL.
    constexpr std::chrono::milliseconds moment{700};
    if (log_.opened() && communicator_.size() > 1)
      last_words.emplace(
          stop, [this] { log_.record_lost_peer(); }, moment);
    while (trainer_->steps_done() < config_.steps) {
      const std::optional<StepReport> report = trainer_->step(stop.received() != 0);
      if (!report) {
        if (last_words) last_words->not_needed();
        progress_.enter(Doing::checkpoint);
        keep_algorithms();
        saving.at_last(trainer_->buffers(), state(), stop);
        return log_.end(EndReason::saved, ExitCode::saved_requeue, "asked to stop");
      }
      keep(*report);
      if (config_.checkpoint_every > 0 && trainer_->steps_done() % config_.checkpoint_every == 0 &&
          trainer_->steps_done() < config_.steps) {
        progress_.enter(Doing::checkpoint);
        keep_algorithms();
        saving.on_the_way(trainer_->buffers(), state());
      }
    }
    if (last_words) last_words->not_needed();
    progress_.enter(Doing::checkpoint);
    keep_algorithms();
    saving.at_last(trainer_->buffers(), state(), stop);
    progress_.enter(Doing::ending);
    sample();
    return log_.end(EndReason::done, ExitCode::done, {});
  }

  void keep(const StepReport& report) {
    const Step step = event_of(report, log_.start(), device_);
    log_.step(step);
    if (!std::exchange(memory_told_, true)) tell_memory(report.step + 1);
    for (const std::string& line : trainer_->new_notices())
      log_.say(Warning{.step = report.step + 1, .code = "cuda_graph", .text = line});
    if (!warned_of_rate_) warned_of_rate_ = log_.warn(above_peak_warning(step, log_.start()));
    if (report.step == 0) log_.warn(first_loss_warning(report.result.cross_entropy, log_.start()));
  }

  /// Whatever a checkpoint is resumed from, its run's algorithms are in the folder.
  void keep_algorithms() {
    if (pins_) warn_of_algorithms(pins_->keep(config_.directory));
  }
  void warn_of_algorithms(const std::optional<std::string>& text) {
    if (text) log_.say(Warning{.step = {}, .code = "algorithms", .text = *text});
  }

  void tell_memory(std::int64_t step) {
    const auto event =
        memory_event(memory_plan_, step, device_, device_memory(device_), device_peak_bytes(device_));
    log_.say(event);
    log_.warn(memory_plan_warning(event));
  }

  checkpoint::State state() const {
    return {.step = trainer_->steps_done(),
            .tokens = trainer_->steps_done() * log_.start().batch.tokens,
            .config = spec::dump_toml(config_)};
  }

  /// Text of the trained model, judged by the grammar. Every rank makes the same, for weights may be in
  /// shares; where they are whole, rank 0 alone.
  void sample() {
    if (!config_.data_paths.empty() || config_.sample_sentences == 0) return;
    if (communicator_.rank() != 0 && !trainer_->groups().layout().shards_weights()) return;
    // Each text is another shape: cuDNN would prepare a plan for every one of them.
    const auto& backend = numerics_.config.attention;
    const attention::Forced for_any_length(
        backend == spec::AttentionBackend::cudnn ? spec::AttentionBackend::flash : backend, device_);
    const auto sentences = sample_sentences(trainer_->model(), config_.seed, config_.sample_sentences,
                                            config_.sequence_length, device_);
    Samples samples;
    samples.step = trainer_->steps_done();
    for (const std::string& sentence : sentences) {
      // A sentence that was cut is judged as if it ended there.
      const auto judgement =
          spec::grammar::judge(spec::grammar::demo(), sentence.ends_with('\n') ? sentence : sentence + "\n");
      for (const auto& verdict : judgement.verdicts) {
        Sample sample{.text = verdict.sentence, .accepted = verdict.valid, .sum_right = {}};
        if (verdict.sum) sample.sum_right = verdict.sum_right;
        samples.samples.push_back(std::move(sample));
      }
      samples.judged += judgement.sentences;
      samples.accepted += judgement.valid;
      samples.sums += judgement.sums;
      samples.sums_right += judgement.sums_right;
    }
    log_.say(samples);
  }

  /// What an engine says of a lost rank is seldom its name: the watch says it, and ends this rank.
  void await_verdict_on(const std::exception& error) const {
    constexpr double patience = 30;  // [s]
    const auto* user = dynamic_cast<const UserError*>(&error);
    const bool agreed = dynamic_cast<const AgreedError*>(&error) != nullptr;
    if (watching_ && user && user->code() == ExitCode::peer_lost && !agreed)
      watching_->watch().await_verdict(patience);
  }

  spec::RunConfig config_;  ///< as asked, with the folder that is really written to
  Communicator& communicator_;
  Progress& progress_;
  Watching* const watching_;
  const spec::ModelSpec model_;
  const spec::Batch batch_;
  const DeviceChoice choice_;
  const at::Device device_;
  const std::shared_ptr<const data::SampleSource> source_;
  const std::string resume_from_;  ///< empty: from the start
  Numerics numerics_;              ///< what is computed by
  spec::memory::Plan memory_plan_;
  std::optional<checkpoint::State> resumed_;  ///< what `resume_from_` says of its run
  bool extended_ = false;                     ///< a complete run that is given more steps
  RunLog log_;
  std::optional<PinnedAlgorithms> pins_;  ///< on a GPU, where the run gives the same bits again
  std::optional<Trainer> trainer_;
  bool warned_of_rate_ = false, memory_told_ = false;
};

}  // namespace

int train(const spec::RunConfig& config, const std::function<void(const std::string& folder)>& recorded) {
  keep_freed_memory();
  return on_ranks(
      config.device,
      [&](const Rank& rank) {
        Run run(config, rank.communicator, rank.choice, rank.progress, rank.watching);
        const int code = run.train();
        if (recorded && run.recorded()) recorded(run.folder());
        rank.take_leave();
        return code;
      },
      config.stall_seconds);
}

}  // namespace assay::impl::run
