#include "impl/run/train.hpp"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/util/Exception.h>

#include <cmath>
#include <iostream>
#include <new>
#include <optional>
#include <thread>
#include <utility>

#include "impl/checkpoint/checkpoint.hpp"
#include "impl/data/grammar_data.hpp"
#include "impl/data/token_data.hpp"
#include "impl/logs/console.hpp"
#include "impl/logs/record_writer.hpp"
#include "impl/ops/attention.hpp"
#include "impl/run/describe.hpp"
#include "impl/run/host.hpp"
#include "impl/run/run_folder.hpp"
#include "impl/run/sample_text.hpp"
#include "impl/run/stop_signal.hpp"
#include "impl/run/trainer.hpp"
#include "spec/config/check.hpp"
#include "spec/config/dump.hpp"
#include "spec/config/keys.hpp"
#include "spec/error.hpp"
#include "spec/grammar/demo_grammar.hpp"
#include "spec/grammar/judge.hpp"
#include "spec/record/run.hpp"
#include "spec/text/quantity.hpp"

namespace assay::impl::run {

namespace {

using namespace spec::record;

at::Device device_of(const spec::RunConfig& config, const Communicator& communicator) {
  const bool gpu = c10::cuda::device_count() > 0;
  if (config.device == spec::Device::cuda) {
    if (!gpu)
      throw UserError(ExitCode::usage,
                      "compute.device=cuda, but no usable NVIDIA GPU was found; `assay doctor` says what "
                      "is missing, compute.device=cpu trains on the CPU");
    if (communicator.size() > 1)
      throw UserError(ExitCode::usage,
                      "compute.device=cuda with " + std::to_string(communicator.size()) +
                          " ranks: gradients are reduced by MPI, on CPUs only; use one rank, or "
                          "compute.device=cpu");
  }
  const bool use_gpu = config.device == spec::Device::cuda ||
                       (config.device == spec::Device::automatic && gpu && communicator.size() == 1);
  return use_gpu ? at::Device(at::kCUDA, 0) : at::Device(at::kCPU);
}

/// Ranks on this host share its cores.
void use_threads(const spec::RunConfig& config, Communicator& communicator) {
  const std::string here = host_name();
  int sharing = 0;
  for (const std::string& host : communicator.all_gather(here)) sharing += host == here;
  const auto cores = static_cast<std::int64_t>(std::thread::hardware_concurrency());
  const std::int64_t threads =
      config.threads > 0 ? config.threads : std::max<std::int64_t>(1, cores / sharing);
  at::set_num_threads(static_cast<int>(threads));
}

/// A system that overcommits would hand out this memory and kill the process later, without a word.
void refuse_what_cannot_fit(const spec::RunConfig& config, const spec::ModelSpec& model, at::Device device) {
  // As ParameterBuffers: weights, gradients, two moments, and master weights of their own beside bf16, or
  // bf16 moments.
  const std::int64_t each = config.dtype == Dtype::f64     ? 4 * 8
                            : config.dtype == Dtype::f32   ? 4 * 4
                            : config.states == Dtype::bf16 ? 3 * 2 + 4
                                                           : 2 + 4 * 4;
  const std::int64_t need = spec::inventory(model).flat_size * each, have = host_memory();
  if (!device.is_cpu() || need <= have) return;
  throw UserError(ExitCode::usage, "model \"" + model.name +
                                       "\" cannot be trained here: its weights, gradients and optimizer "
                                       "state take " +
                                       spec::bytes(need) + ", this machine has " + spec::bytes(have) +
                                       "; choose a smaller model, or a machine with more memory");
}

/// Memory that ran out while training, told apart from faults of the program.
std::optional<UserError> out_of_memory(const std::exception& error, const spec::Batch& batch) {
  const auto* torch = dynamic_cast<const c10::Error*>(&error);
  const std::string text = torch ? torch->what_without_backtrace() : error.what();
  const bool ran_out = dynamic_cast<const std::bad_alloc*>(&error) ||
                       dynamic_cast<const c10::OutOfMemoryError*>(&error) ||
                       (torch && text.find("can't allocate memory") != std::string::npos);
  if (!ran_out) return {};
  return UserError(ExitCode::usage,
                   "memory ran out with " + std::to_string(batch.micro) +
                       " sequences per pass; lower batch.micro (the sum over the batch stays "
                       "the same), batch.sequence_length, or take a smaller model (" +
                       text + ")");
}

std::shared_ptr<const data::SampleSource> open_data(const spec::RunConfig& config,
                                                    const spec::ModelSpec& model) {
  if (config.data_paths.empty())
    return std::make_shared<data::GrammarData>(config.seed, config.sequence_length, config.grammar_samples);
  const std::vector<std::filesystem::path> paths(config.data_paths.begin(), config.data_paths.end());
  return std::make_shared<data::TokenData>(paths, data::token_type(config.data_dtype), model.vocab,
                                           config.sequence_length);
}

/// `flops` of all ranks in `seconds` as a share of `peak`, all ranks' too; nothing when the peak is unknown,
/// or when no machine could have done it.
std::optional<double> share_of_peak(double flops, double seconds, const std::optional<double>& peak) {
  if (!peak || !(seconds > 0) || flops > *peak * seconds) return {};
  return flops / seconds / *peak;
}

Step event_of(const StepReport& report, const RunStart& start, at::Device device) {
  const auto phase = [&](Phase p) { return report.phases[static_cast<std::size_t>(p)]; };
  char hash[17];
  std::snprintf(hash, sizeof hash, "%016llx", static_cast<unsigned long long>(report.sample_hash));
  return {
      .step = report.step + 1,
      .loss = report.result.cross_entropy,
      .z_loss = report.result.z_loss,
      .gradient_norm = report.result.gradient_norm,
      .clip_coefficient = report.result.clip_coefficient,
      .learning_rate = report.learning_rate,
      .tokens = report.tokens,
      .valid_tokens = report.valid_tokens,
      .seconds = report.seconds,
      .tokens_per_second = static_cast<double>(report.tokens) / report.seconds,
      .mfu = share_of_peak(static_cast<double>(report.tokens) * static_cast<double>(start.flops_per_token),
                           report.seconds, start.peak_flops),
      .hfu = share_of_peak(report.executed_flops, report.seconds, start.peak_flops),
      .executed_flops = report.executed_flops,
      .phases = {.data_wait = phase(Phase::data_wait),
                 .forward = phase(Phase::forward),
                 .backward = phase(Phase::backward),
                 .reduce = phase(Phase::reduce),
                 .clip = phase(Phase::clip),
                 .update = phase(Phase::update),
                 .checkpoint = 0,
                 .other = phase(Phase::other)},
      .sample_hash = hash,
      .resident_bytes = resident_bytes(),
      .device_peak_bytes = device_peak_bytes(device)};
}

/// One start of the program, from the first event of the record to the last.
class Run {
 public:
  Run(const spec::RunConfig& config, Communicator& communicator)
      : config_(config),
        communicator_(communicator),
        model_(model_of(config)),
        batch_(spec::batch_of(config.sequences, config.micro, communicator.size())),
        device_(device_of(config, communicator)),
        source_(open_data(config, model_)),
        resume_from_(resume_path(config)) {}

  const std::string& folder() const { return config_.directory; }

  int train() {
    refuse_what_cannot_fit(config_, model_, device_);
    // Before the record is opened: a refused resume must leave no trace in the record of the run it named.
    if (!resume_from_.empty())
      refuse_other_settings(config_, checkpoint::read_state(resume_from_).config, resume_from_);
    use_threads(config_, communicator_);
    start_ = describe({config_, model_, batch_, device_, *source_}, communicator_);
    // Last, so that a run whose settings or data are refused leaves no folder behind.
    config_.directory = run_directory(config_, communicator_);
    start_.settings = spec::settings(config_);
    if (communicator_.rank() == 0) {
      writer_.emplace(config_.directory + "/run.jsonl");
      console_.emplace(std::cout, std::cerr, logs::detect_terminal(), config_.log_every);
    }
    const StopSignal stop;  // before the run is known to anyone who could stop it
    say(start_);
    try {
      return train_steps(stop);
    } catch (const NonFiniteError& error) {
      end(EndReason::non_finite, error.code(), error.what());
      throw;
    } catch (const UserError& error) {
      end(EndReason::error, error.code(), error.what());
      throw;
    } catch (const std::exception& error) {
      const auto memory = out_of_memory(error, batch_);
      if (!memory) throw;
      end(EndReason::error, memory->code(), memory->what());
      throw *memory;
    }
  }

 private:
  static spec::ModelSpec model_of(const spec::RunConfig& config) {
    spec::ModelSpec model = spec::find_model(config.model);
    if (config.init_std > 0) model.init_std = config.init_std;
    spec::check(config, model);
    return model;
  }

  int train_steps(const StopSignal& stop) {
    trainer_.emplace(config_, model_, batch_, device_, source_, communicator_);
    if (resume_from_.empty()) {
      trainer_->initialise();
      trainer_->start_after(0);
    } else {
      const checkpoint::State state = checkpoint::load(resume_from_, trainer_->buffers());
      trainer_->start_after(state.step);
      say(ResumeFrom{.step = state.step, .path = resume_from_});
    }
    while (trainer_->steps_done() < config_.steps) {
      const std::optional<StepReport> report = trainer_->step(stop.received() != 0);
      if (!report) {
        save();
        return end(EndReason::saved, ExitCode::saved_requeue, "asked to stop");
      }
      keep(*report);
      if (config_.checkpoint_every > 0 && trainer_->steps_done() % config_.checkpoint_every == 0 &&
          trainer_->steps_done() < config_.steps)
        save();
    }
    save();
    sample();
    return end(EndReason::done, ExitCode::done, {});
  }

  void keep(const StepReport& report) {
    steps_.push_back(event_of(report, start_, device_));
    tokens_ += report.tokens;
    seconds_ += report.seconds;
    say(steps_.back());
    for (const std::string& line : attention::new_choices())
      say(Warning{.step = report.step + 1, .code = "attention", .text = line});
    if (start_.peak_flops && !(steps_.back().mfu && steps_.back().hfu)) warn_of_impossible_rate(report);
    if (report.step == 0) compare_first_loss(report.result.cross_entropy);
  }

  void warn_of_impossible_rate(const StepReport& report) {
    if (std::exchange(warned_of_rate_, true)) return;
    char text[300];
    std::snprintf(
        text, sizeof text,
        "%.4g FLOPs in %.3g s are more than the peak of %.4g FLOP/s allows, so MFU and HFU are left "
        "out; look at the clock and at which GPU the peak is of",
        report.executed_flops, report.seconds, *start_.peak_flops);
    say(Warning{.step = report.step + 1, .code = "above_peak", .text = text});
  }

  void compare_first_loss(double loss) {
    const auto& expected = start_.expected_first_loss;
    if (!expected || !(expected->standard_deviation > 0)) return;
    const double deviations = (loss - expected->mean) / expected->standard_deviation;
    if (std::abs(deviations) <= 4) return;
    char text[400];
    std::snprintf(
        text, sizeof text,
        "the first loss is %.4f, expected %.4f +- %.4f for an untrained model: %.1f standard deviations off; "
        "look "
        "at the initial weights (model.init_std), the vocabulary, and whether targets are shifted by one",
        loss, expected->mean, expected->standard_deviation, deviations);
    say(Warning{.step = 1, .code = "first_loss", .text = text});
  }

  void save() {
    if (communicator_.rank() == 0) {
      const checkpoint::State state{.step = trainer_->steps_done(),
                                    .tokens = trainer_->steps_done() * start_.batch.tokens,
                                    .config = spec::dump_toml(config_)};
      const checkpoint::Saved saved =
          checkpoint::save(config_.directory, trainer_->buffers(), state, config_.checkpoint_keep);
      say(Checkpoint{.step = state.step, .path = saved.path, .bytes = saved.bytes, .seconds = saved.seconds});
    }
    communicator_.barrier();
  }

  /// Text of the trained model, judged by the grammar. Rank 0 alone: weights are the same everywhere.
  void sample() {
    if (communicator_.rank() != 0 || !config_.data_paths.empty() || config_.sample_sentences == 0) return;
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
    say(samples);
  }

  int end(EndReason reason, ExitCode code, const std::optional<std::string>& message) {
    RunEnd event{.reason = reason,
                 .exit_code = static_cast<std::int64_t>(code),
                 .message = message,
                 .steps = static_cast<std::int64_t>(steps_.size()),
                 .tokens = tokens_,
                 .seconds = seconds_,
                 .tokens_per_second = seconds_ > 0 ? static_cast<double>(tokens_) / seconds_ : 0,
                 .final_loss = {},
                 .final_steps = {},
                 .floor = start_.data.floor,
                 .gap_closed = {}};
    constexpr std::int64_t last_steps = 10;
    event.final_loss = mean_loss(steps_, last_steps);
    if (event.final_loss) event.final_steps = std::min<std::int64_t>(last_steps, event.steps);
    if (event.final_loss && event.floor)
      event.gap_closed = gap_closed(*event.final_loss, *event.floor, start_.vocab);
    say(event);
    if (writer_) writer_->sync();
    return static_cast<int>(code);
  }

  /// Prints and records on rank 0.
  void say(const Event& event) {
    if (writer_) writer_->write(event);
    if (console_) console_->show(event);
  }

  spec::RunConfig config_;  ///< with the folder that is really written to
  Communicator& communicator_;
  const spec::ModelSpec model_;
  const spec::Batch batch_;
  const at::Device device_;
  const std::shared_ptr<const data::SampleSource> source_;
  const std::string resume_from_;  ///< empty: from the start
  RunStart start_;
  std::optional<Trainer> trainer_;
  std::optional<logs::RecordWriter> writer_;
  std::optional<logs::Console> console_;
  std::vector<Step> steps_;
  std::int64_t tokens_ = 0;
  double seconds_ = 0;
  bool warned_of_rate_ = false;
};

}  // namespace

int train(const spec::RunConfig& config, const std::function<void(const std::string& folder)>& recorded) {
  keep_freed_memory();
  const std::unique_ptr<Communicator> communicator = make_communicator();
  try {
    const c10::InferenceMode no_autograd;  // backward is written out
    Run run(config, *communicator);
    const int code = run.train();
    if (recorded && communicator->rank() == 0) recorded(run.folder());
    return code;
  } catch (const std::exception& error) {
    if (communicator->size() == 1) throw;
    // The other ranks wait in a collective for this one: end all of them, with the code of the reason.
    const auto* user = dynamic_cast<const UserError*>(&error);
    const bool spec_error = dynamic_cast<const SpecError*>(&error) != nullptr;
    const ExitCode code = user ? user->code() : spec_error ? ExitCode::usage : ExitCode::bug;
    const bool everywhere =
        dynamic_cast<const NonFiniteError*>(&error) != nullptr;  // all ranks throw it alike
    if (!everywhere || communicator->rank() == 0)
      std::cerr << "assay: error: rank " << communicator->rank() << ": " << error.what() << std::endl;
    if (everywhere) {
      communicator->barrier();
      return static_cast<int>(code);
    }
    communicator->abort(static_cast<int>(code));
    throw;  // not reached
  }
}

}  // namespace assay::impl::run
