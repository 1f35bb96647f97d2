#include "impl/run/train.hpp"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <optional>
#include <thread>
#include <utility>

#include "impl/checkpoint/checkpoint.hpp"
#include "impl/checkpoint/folder.hpp"
#include "impl/checkpoint/newest_whole.hpp"
#include "impl/comm/refusal.hpp"
#include "impl/generate/generate.hpp"
#include "impl/machine/device_choice.hpp"
#include "impl/machine/host.hpp"
#include "impl/ops/determinism.hpp"
#include "impl/run/profiling.hpp"
#include "impl/run/run_log.hpp"
#include "impl/run/saving.hpp"
#include "impl/run/start/host_ranks.hpp"
#include "impl/run/start/memory_limits.hpp"
#include "impl/run/start/on_ranks.hpp"
#include "impl/run/start/pinned_algorithms.hpp"
#include "impl/run/start/run_folder.hpp"
#include "impl/run/start/start.hpp"
#include "impl/run/step_event.hpp"
#include "impl/run/stop_signal.hpp"
#include "impl/run/survivors.hpp"
#include "impl/run/trainer.hpp"
#include "impl/run/warnings.hpp"
#include "spec/config/dump.hpp"
#include "spec/config/keys.hpp"
#include "spec/error.hpp"
#include "spec/failure.hpp"
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
  Run(Start start, const Rank& rank)
      : start_(std::move(start)),
        config_(start_.config),
        communicator_(rank.communicator),
        row_(rank.row),
        watch_(rank.watch),
        device_(start_.device.device),
        rank_(rank) {}

  ~Run() {
    if (!watch_) return;
    watch_->record_by({});
  }

  const std::string& folder() const { return config_.directory; }

  /// Whether this start of the program has written to the record.
  bool recorded() const { return log_.opened(); }

  int train(const StopSignal& stop) {
    if (start_.complete()) return say_complete();
    set_deterministic(start_.numerics.config.deterministic == spec::Determinism::on);
    use_threads(config_, communicator_);
    const auto disk = disk_warning(start_, rank_);
    log_.begin(open_record(start_, rank_), config_.directory);
    if (communicator_.rank() == 0) log_.open(config_.log_every, config_.log_tensorboard);
    record_what_the_watch_sees();
    try {
      say_start(disk);
      const int code = train_steps(stop);
      stop.run_is_over(code);
      return code;
    } catch (const std::exception& error) {
      await_verdict_on(error);
      save_what_is_intact(error, stop);
      const auto memory = out_of_memory(error, start_.batch, device_, [&] {
        return divisions_with_less(start_.plan, config_, start_.model, start_.memory);
      });
      // While weights and moments are there.
      if (watch_ && !is_of_all(error)) watch_->fail(failure_of(memory ? *memory : error).text);
      log_.record_failure(memory ? *memory : error);
      if (memory) throw *memory;
      throw;
    }
  }

 private:
  /// Nothing is written.
  int say_complete() const {
    const std::int64_t done = start_.resume->state.step;
    if (done > config_.steps)
      throw AgreedError(ExitCode::usage,
                        start_.resume->path + " is of step " + std::to_string(done) +
                            ", behind train.steps = " + std::to_string(config_.steps) +
                            ": give more steps than are done, or resume an earlier checkpoint by "
                            "its path");
    const std::filesystem::path run = std::filesystem::path(start_.resume->path).parent_path().parent_path();
    const std::string into = run == config_.directory ? "" : " --into " + config_.directory;
    if (communicator_.rank() == 0)
      std::cerr << start_.resume->path << ": this run is complete: step " << done << " of " << config_.steps
                << " is done; nothing was trained or written\n"
                << "to go on, give it more steps: train.steps=" << 2 * config_.steps << ", or `assay resume "
                << run.string() << " --change train.steps=" << 2 * config_.steps << into
                << "` (the learning rate then follows the longer schedule)" << std::endl;
    return static_cast<int>(ExitCode::done);
  }

  void record_what_the_watch_sees() {
    if (!watch_) return;
    WatchRecord record;
    record.save = [this, directory = config_.directory](int lost, bool stays) {
      if (const Survivors* left = survivors_.load())
        saved_without_ = left->save(lost, stays, first_step_, directory);
    };
    record.advice = [this, directory = config_.directory] {
      return (saved_without_.empty() ? "" : saved_without_ + "; ") + way_to_go_on(directory);
    };
    record.loss = [this](const std::string& text) { log_.record_lost_rank(text); };
    if (log_.opened())
      record.slow = [this](const std::string& text, bool aloud) {
        log_.say(Warning{.step = {}, .code = "slow_rank", .text = text}, aloud);
      };
    watch_->record_by(std::move(record));
  }

  void say_start(const std::optional<std::string>& disk) {
    const auto warn = [&](const char* code, const std::optional<std::string>& text) {
      if (text) log_.say(Warning{.step = {}, .code = code, .text = *text});
    };
    log_.say(log_.start());
    for (const std::string& damage : log_.damage()) warn("record_damaged", damage);
    for (const std::string& note : start_.notes) warn("changed_files", note);
    warn("model_options", options_text(start_.without_effect));
    warn("gpu", start_.device.notice);
    for (const Warning& note : start_.numerics.notes) log_.say(note);
    log_.warn(numa_warning(log_.start()));
    warn("disk_space", disk);
    if (start_.resume) warn("linked_checkpoint", linked_checkpoints(config_.directory));
    if (const char* drill = std::getenv("ASSAY_FAULT_DRILL"))
      warn("drill", std::string("a fault is planted: ") + drill);
  }

  int train_steps(const StopSignal& stop) {
    if (device_.is_cuda() && deterministic())
      pins_.emplace(algorithms_here(device_, log_.start().attention.value_or("")), cuda::gemm_pins(),
                    communicator_);
    if (pins_) warn_of_algorithms(pins_->begin(start_.resume ? start_.resume->path : ""));
    loads_.emplace(start_.plan, start_.room, [this] { return room_now(device_); });
    log_.warn(loads_->warning());
    trainer_.emplace(start_.numerics.config, start_.model, start_.batch, device_, start_.source,
                     communicator_, &*loads_);
    trainer_->report_to(row_);
    Saving& saving = saving_.emplace(config_, trainer_->groups(),
                                     [this](const Event& event) { alone([&] { log_.say(event); }); });
    saving.on_piece([this] { row_.tick(); });
    saving.on_save([this] { keep_a_folder(), keep_algorithms(); });
    saving.take_memory(trainer_->buffers());
    if (start_.resume) {
      go_on_from(*start_.resume);
    } else {
      if (config_.weights.empty())
        trainer_->initialise();
      else
        log_.say(trainer_->import_weights(config_.weights));
      trainer_->start_after(0);
    }
    first_step_ = trainer_->steps_done();
    if (watch_)
      survivors_ = &together_.emplace(
          trainer_->groups(), trainer_->unsettled_buffers(), trainer_->mark(),
          [this, start = state()](const WholeState& whole) { return target_of(start, whole); });
    saved_at_ = std::chrono::steady_clock::now();
    profiling_.emplace(config_.profile, config_.directory, static_cast<int>(communicator_.rank()), device_);
    bool save_at_end = config_.checkpoint_at_end;
    if (validation_owed_) validate(stop);
    while (trainer_->steps_done() < config_.steps) {
      log_.enter(RunPart::steps);
      const std::optional<StepReport> report = step_of(stop);
      log_.enter(RunPart::other);
      if (!report) {
        alone([&] { say_profile(profiling_->finish()); });
        timed_save([&] {
          saving.finish();  // maybe of this very step
          if (saving.saved() != trainer_->steps_done()) saving.at_last(trainer_->buffers(), state(), stop);
        });
        agree_on_errors();
        return log_.end(EndReason::saved, ExitCode::saved_requeue, "asked to stop");
      }
      alone([&] { keep(*report); });
      alone([&] { say_profile(std::exchange(profile_, {})); });
      const std::int64_t done = trainer_->steps_done();
      const bool best = validation_is_due(done) && validate(stop) && config_.keep_best;
      const bool save_is_due =
          report->save || (config_.checkpoint_every > 0 && done % config_.checkpoint_every == 0);
      const bool made_up_for = saving.active() && look_after(saving);
      if (save_is_due || best || made_up_for) {
        if (done == config_.steps) {
          save_at_end = true;
          continue;
        }
        waited_for_save_ += timed_save([&] { saving.on_the_way(trainer_->buffers(), state()); });
        saved_at_ = std::chrono::steady_clock::now();
      }
    }
    alone([&] { say_profile(profiling_->finish()); });
    timed_save([&] {
      if (!save_at_end) {
        saving.finish();
        save_at_end = saving.active();  // what failed is owed
      }
      if (save_at_end)
        saving.at_last(trainer_->buffers(), state(), stop);
      else
        keep_a_folder();
    });
    agree_on_errors();
    if (validation_stopped_)
      return log_.end(EndReason::saved, ExitCode::saved_requeue, "asked to stop before the last validation");
    row_.enter(Doing::ending);
    log_.enter(RunPart::evaluation);
    sample();
    log_.enter(RunPart::other);
    return log_.end(
        EndReason::done, ExitCode::done,
        save_at_end ? std::nullopt
                    : std::optional<std::string>("not saved after its last step: checkpoint.at_end = off"));
  }

  void go_on_from(ResumePoint& point) {
    const checkpoint::State state = load_whole(point);
    trainer_->start_after(state.step, state.skipped);
    if (start_.validation) lowest_loss_ = lowest_saved_loss();
    validation_owed_ = validation_is_due(state.step) && !point.state.validation;
    log_.say(ResumeFrom{.step = state.step, .path = point.path, .changed = point.changes.settings});
    log_.warn(longer_schedule_warning(point.settings(), config_, state.step));
  }

  /// What is damaged within a checkpoint is found as it is read: where the newest one of a folder was asked
  /// for, the one before it is `point` then.
  checkpoint::State load_whole(ResumePoint& point) {
    for (;;) {
      try {
        checkpoint::State state = trainer_->load(point.path);
        say_passed_over(point);
        return state;
      } catch (const UserError& error) {
        if (!is_of_all(error) || error.code() != ExitCode::bad_data || point.path == config_.resume_path)
          throw;
        std::vector<checkpoint::PassedOver> known = point.passed_over;
        known.push_back({point.path, error.what()});
        refuse_together(communicator_, [&] {
          if (auto before = resume_point(start_.request, known)) {
            compare(start_.request, start_.identity, *before);
            point = std::move(*before);
          }
        });
      }
    }
  }

  /// Those of this run's own folder make room for the steps that are done again.
  void say_passed_over(const ResumePoint& point) {
    if (communicator_.rank() != 0) return;
    for (const checkpoint::PassedOver& each : point.passed_over) {
      const std::string misnamed = checkpoint::misnamed(each.path);
      const bool whole = !misnamed.empty();
      std::string text = (whole ? misnamed : each.why) + "; passed over, the run goes on after step " +
                         std::to_string(point.state.step);
      if (config_.resume == spec::Resume::automatic)
        text += std::string("; ") + (whole ? "it" : "the damaged one") + " is now " +
                checkpoint::set_aside(each.path, whole ? ".misnamed" : ".damaged");
      log_.say(
          Warning{.step = {}, .code = whole ? "misnamed_checkpoint" : "damaged_checkpoint", .text = text});
    }
  }

  bool validation_is_due(std::int64_t done) const {
    return start_.validation && ((config_.eval_every > 0 && done % config_.eval_every == 0) ||
                                 (config_.eval_at_end && done == config_.steps));
  }

  /// Whether the loss is the lowest so far. A stop ends it without one: a resume does it again.
  bool validate(const StopSignal& stop) {
    row_.enter(Doing::validation);
    log_.enter(RunPart::evaluation);
    const auto begin = std::chrono::steady_clock::now();
    const auto loss = trainer_->validate(*start_.validation, [&] { return stop.received() != 0; });
    if (!loss) {
      validation_stopped_ = true;
      log_.enter(RunPart::other);
      return false;
    }
    Validation event = event_of(*loss, *start_.validation);
    event.step = trainer_->steps_done();
    event.set_hash = start_.validation_hash;
    event.lowest = !lowest_loss_ ? std::isfinite(event.loss) : event.loss < *lowest_loss_;
    if (event.lowest) lowest_loss_ = event.loss;
    event.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    alone([&] { log_.say(event); });
    log_.enter(RunPart::other);
    validated_ = std::move(event);
    return validated_->lowest;
  }

  /// Of the checkpoint of this folder that is named the best, on the same set. Rank 0's answer is every
  /// rank's.
  std::optional<double> lowest_saved_loss() {
    const at::Tensor loss = at::zeros({1}, at::kDouble);
    if (communicator_.rank() == 0) {
      const auto best = checkpoint::best_of(config_.directory);
      loss.fill_(best && best->set == start_.validation_hash ? best->loss : std::nan(""));
    }
    communicator_.all_reduce_sum(loss);
    const double lowest = loss.item<double>();
    return std::isnan(lowest) ? std::nullopt : std::optional(lowest);
  }

  /// Whether rank 0's clock asks for a save after the step that comes.
  bool clock_asks() const {
    const std::chrono::duration<double, std::ratio<60>> since = std::chrono::steady_clock::now() - saved_at_;
    return config_.checkpoint_minutes > 0 && since.count() >= config_.checkpoint_minutes;
  }

  /// Work of this rank alone between two steps, as for its record. The others know of an error in it when
  /// they meet again, before the next step: until then this rank goes on, or they would wait for it.
  void alone(const std::function<void()>& work) {
    try {
      work();
    } catch (const std::exception&) {
      if (!failed_) failed_ = std::current_exception();
    }
  }

  /// Where no step comes any more. Collective. Errors: AgreedError.
  void agree_on_errors() {
    refuse_together(communicator_, [&] {
      if (failed_) std::rethrow_exception(std::exchange(failed_, {}));
    });
  }

  /// A step. A stop that was asked for during the start waits until the first one is done.
  std::optional<StepReport> step_of(const StopSignal& stop) {
    const bool stops = stop.received() != 0 && trainer_->steps_done() > first_step_;
    const std::int64_t number = trainer_->steps_done() + 1;
    alone([&] { profiling_->begin(number); });
    auto report = trainer_->step(stops, clock_asks(), std::exchange(failed_, {}));
    if (report) alone([&] { profile_ = profiling_->end(number); });
    return report;
  }

  void say_profile(const std::optional<Profile>& profile) {
    if (const auto fault = profiling_->fault())
      log_.say(Warning{.step = trainer_->steps_done(), .code = "profile", .text = *fault});
    if (profile) log_.say(*profile);
  }

  /// An error that every rank has.
  bool is_of_all(const std::exception& error) const {
    return communicator_.size() == 1 || dynamic_cast<const AgreedError*>(&error) != nullptr;
  }

  /// Whatever has ended the run on all of its ranks: a save that is under way is of a good state, and waited
  /// for, and where weights and moments are whole, they are saved. What keeps them from it hides nothing:
  /// `error` is thrown on.
  void save_what_is_intact(const std::exception& error, const StopSignal& stop) {
    if (!is_of_all(error) || !saving_ || saving_->gave_up()) return;
    try {
      saving_->finish();
      const auto intact = trainer_->intact_after();
      if (!intact || *intact <= first_step_ || intact == saving_->saved()) return;
      timed_save([&] { saving_->at_last(trainer_->buffers(), state(), stop); });
    } catch (const std::exception& other) {
      alone([&] {
        log_.say(Warning{.step = trainer_->steps_done(), .code = "not_saved", .text = other.what()});
      });
    }
  }

  /// Of a save that goes on beside the steps, or failed: whether one is to be made up for now.
  bool look_after(Saving& saving) {
    log_.enter(RunPart::saves);
    const auto begin = std::chrono::steady_clock::now();
    const bool made_up_for = saving.between_steps();
    waited_for_save_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    log_.enter(RunPart::other);
    return made_up_for;
  }

  /// Seconds that it took.
  double timed_save(const std::function<void()>& save) {
    row_.enter(Doing::checkpoint);
    log_.enter(RunPart::saves);
    const auto begin = std::chrono::steady_clock::now();
    save();
    // A part of the run's saves: not a moment longer than what the record's goodput counts as such.
    const std::chrono::duration<double> lasted = std::chrono::steady_clock::now() - begin;
    log_.enter(RunPart::other);
    return lasted.count();
  }

  void keep(StepReport report) {
    report.waited_for_save = std::exchange(waited_for_save_, 0);
    if (!report.not_finite.empty())
      return log_.say(skipped_event_of(report, trainer_->skipped(), config_.max_skipped));
    const Step step = event_of(report, log_.start(), device_);
    log_.step(step);
    if (!std::exchange(memory_said_, true)) say_memory(report.step + 1);
    for (const std::string& line : trainer_->new_notices())
      log_.say(Warning{.step = report.step + 1, .code = "cuda_graph", .text = line});
    if (!warned_of_rate_) warned_of_rate_ = log_.warn(above_peak_warning(step, log_.start()));
    if (report.step == 0) log_.warn(first_loss_warning(report.result.cross_entropy, log_.start()));
  }

  /// A run whose folder was removed, renamed or unmounted, or has another one in its place, goes on in
  /// another one, which is made now. Collective. Errors: UserError(io) where no place is left.
  void keep_a_folder() {
    std::string now;
    bool whole = true;
    refuse_together(communicator_, [&] {
      if (communicator_.rank() != 0 || log_.in_place()) return;
      const bool record_alone = log_.folder_in_place();
      now = record_alone ? config_.directory : another_folder(config_.directory);
      try {
        whole = log_.move_to(now);
      } catch (...) {
        if (!record_alone) unclaim(now);
        throw;
      }
      alone([&] { log_.say(folder_warning(config_.directory, now, record_alone, whole)); });
    });
    now = communicator_.all_gather(now).front();
    if (now.empty() || now == config_.directory) return;
    if (communicator_.rank() != 0) log_.move_to(now);
    start_.config.directory = now;
    record_what_the_watch_sees();
  }

  /// Whatever a checkpoint is resumed from, its run's algorithms are in the folder.
  void keep_algorithms() {
    if (pins_) warn_of_algorithms(pins_->keep(config_.directory));
  }
  void warn_of_algorithms(const std::optional<std::string>& text) {
    if (text) alone([&] { log_.say(Warning{.step = {}, .code = "algorithms", .text = *text}); });
  }

  void say_memory(std::int64_t step) {
    const auto event = memory_event(start_.plan, step, device_, device_memory(device_),
                                    device_peak_bytes(device_), loads_->largest());
    log_.say(event);
    log_.warn(memory_plan_warning(event));
  }

  checkpoint::State state() {
    const std::int64_t step = trainer_->intact_after().value_or(trainer_->steps_done());
    checkpoint::State state{
        .step = step,
        .tokens = trainer_->tokens_at(step),
        .config = spec::dump_toml(spec::with_whole_paths(config_)),
        .derived = spec::derived_settings(config_),
        .data = start_.resume ? files_of_next(start_.identity, *start_.resume) : start_.identity.files,
        .validation = {},
        .model = spec::to_toml(start_.model)};
    state.skipped = trainer_->skipped();
    state.record = log_.place_on_disk();
    if (validated_ && validated_->step == state.step && std::isfinite(validated_->loss))
      state.validation = {.loss = validated_->loss, .set = validated_->set_hash};
    return state;
  }

  /// What the ranks that are left save; `start`: the state that this start began with.
  Survivors::Target target_of(checkpoint::State start, const WholeState& whole) const {
    start.step = whole.step, start.skipped = whole.skipped;
    start.tokens = trainer_->tokens_at(whole.step);
    start.record.clear(), start.validation.reset();
    return {.state = std::move(start), .keep = {config_.checkpoint_keep, config_.keep_best}};
  }

  /// Text of the trained model, judged by the grammar. Every rank makes the same, for weights may be in
  /// shards or experts elsewhere; where they are not, the tensor ranks of data rank 0 alone.
  void sample() {
    if (!config_.data_paths.empty() || config_.sample_sentences == 0) return;
    LayoutGroups& groups = trainer_->groups();
    const bool of_all = groups.layout().shards_weights() || groups.expert().size() > 1;
    if (groups.batch().rank() != 0 && !of_all) return;
    // All that take part go on with the first one's tokens: a text that ended on some alone would leave the
    // others in a collective.
    Communicator& together = of_all ? groups.all() : groups.tensor();
    generate::Hooks hooks;
    if (groups.tensor().size() > 1 || groups.expert().size() > 1)
      hooks.agreed = [&](const generate::Ids& drawn) {
        const std::string bytes(drawn.begin(), drawn.end()), first = together.all_gather(bytes).front();
        generate::Ids ids;
        for (const char byte : first) ids.push_back(static_cast<unsigned char>(byte));
        return ids;
      };
    // Each as if after a line end, with the one that ends it.
    const auto texts = generate::generate(
        trainer_->model(),
        {.prompts = std::vector<generate::Ids>(static_cast<std::size_t>(config_.sample_sentences), {'\n'}),
         .most = std::min(config_.sequence_length, spec::memory::most_sampled_tokens) - 1,
         .sampling = {.temperature = 1, .top_p = 1, .seed = config_.seed},
         .ends = {'\n'},
         .tensor_ranks = groups.tensor().size()},
        hooks);
    Samples samples;
    samples.step = trainer_->steps_done();
    for (const generate::Ids& text : texts) {
      const std::string sentence(text.begin(), text.end());
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

  /// What an engine says of a lost rank is seldom its name: the watch says it, and ends this rank meanwhile,
  /// however long it saves what is left.
  void await_verdict_on(const std::exception& error) const {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    const auto* user = dynamic_cast<const UserError*>(&error);
    if (!watch_ || !user || user->code() != ExitCode::peer_lost || is_of_all(error)) return;
    while (watch_->concludes() || std::chrono::steady_clock::now() < until)
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }

  Start start_;
  const spec::RunConfig& config_;  ///< start_'s
  Communicator& communicator_;
  Row& row_;
  RankWatch* const watch_;
  const at::Device device_;
  const Rank& rank_;
  RunLog log_;
  std::optional<PinnedAlgorithms> pins_;  ///< on a GPU, where the run gives the same bits again
  std::optional<ExpertLoads> loads_;
  std::optional<Trainer> trainer_;
  std::optional<Saving> saving_;
  std::optional<Survivors> together_;
  std::atomic<const Survivors*> survivors_ = nullptr;  ///< once the state is loaded
  std::string saved_without_;  ///< a lost rank, by the watch's thread: what became of it
  std::exception_ptr failed_;  ///< of this rank alone, until the others know
  std::optional<Profiling> profiling_;
  std::optional<Profile> profile_;                  ///< that was not shown yet
  double waited_for_save_ = 0;                      ///< by the step that comes next [s]
  std::optional<Validation> validated_;             ///< last
  std::optional<double> lowest_loss_;               ///< of the validations so far [nats per token]
  std::int64_t first_step_ = 0;                     ///< steps that were done when this start began to train
  std::chrono::steady_clock::time_point saved_at_;  ///< or began to train
  bool warned_of_rate_ = false, memory_said_ = false;
  bool validation_owed_ = false;     ///< of the step that was resumed: a stop had ended it
  bool validation_stopped_ = false;  ///< the last one, by a stop
};

}  // namespace

int train(const std::function<Request()>& load,
          const std::function<void(const std::string& folder)>& recorded) {
  keep_freed_memory();
  const StopSignal stop;  // before the run is known to anyone who could stop it
  Request request;
  const auto settings = [&]() -> RankSettings {
    request = load();
    return {.device = request.config.device, .stall_seconds = request.config.stall_seconds};
  };
  return on_ranks(
      settings,
      [&](const Rank& rank) {
        Run run(prepare(request, rank), rank);
        const int code = run.train(stop);
        if (recorded && run.recorded()) recorded(run.folder());
        rank.take_leave();
        return code;
      },
      [&] { return stop.received() != 0; });
}

}  // namespace assay::impl::run
