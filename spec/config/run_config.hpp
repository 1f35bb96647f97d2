#pragma once
// Every setting of a training run, typed. The table of keys behind it (spec/config/keys.hpp) is the only
// source of a setting's name, default, range and meaning; parsing, --dump-config, completion
// and the docs read it.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "spec/batch/ramp.hpp"
#include "spec/batch/schedule.hpp"
#include "spec/config/data_sources.hpp"
#include "spec/data/mixture.hpp"
#include "spec/model/recompute.hpp"
#include "spec/ops/attention/attention_choice.hpp"
#include "spec/ops/linear/linear_precision.hpp"
#include "spec/ops/load_balancing/load_balancing.hpp"
#include "spec/parallel/data_layout.hpp"
#include "spec/tolerance.hpp"

namespace assay::spec {

enum class Device { cpu, cuda, automatic };
/// Whether a run gives the same bits again; automatic: where attention's fixed order fits in memory.
enum class Determinism { automatic, off, on };
/// When FP8 twins of weights are made; automatic: with each update where they fit in memory.
enum class TwinsMade { automatic, step, use };
enum class Resume { never, automatic, path };
/// What becomes of a step whose loss or gradient is not finite.
enum class OnNonFinite { stop, skip };

/// Of `assay train` without arguments; its recipe is the settings' defaults.
inline constexpr const char* demo_model = "tiny-llama";

/// Steps from `first` to `last`, both of them, counted from 1; none where first is 0.
struct StepWindow {
  std::int64_t first = 0, last = 0;
  bool on() const { return first > 0; }
  bool holds(std::int64_t step) const { return on() && step >= first && step <= last; }
  bool operator==(const StepWindow&) const = default;
};

/// Names of the settings that were stated, by a recipe, a command line or the run that goes on. Two runs with
/// the same values are the same run, however these came about: all of them compare equal.
struct Stated {
  std::set<std::string> names;
  bool operator==(const Stated&) const { return true; }
};

/// The members' values are the run of `assay train` without arguments, recipes/demo.toml.
struct RunConfig {
  // model
  std::string model = demo_model;  ///< name, .toml, config.json or folder (spec/model find_model)
  std::string weights;  ///< folder of Hugging Face weights that training starts from; empty: from train.seed
  double init_std = 0;  ///< 0: the model's own [dimensionless]

  // batch: stated once, globally
  std::int64_t sequences = 32;         ///< sequences per optimizer step over all ranks
  std::vector<RampStage> ramp;         ///< stages of a smaller batch before it
  std::int64_t micro = 0;              ///< sequences of one micro-batch, per rank; 0: see micro_sequences
  std::int64_t sequence_length = 128;  ///< T [tokens]

  // data
  std::vector<std::string> data_paths;     ///< empty: the grammar
  std::vector<DataSource> mixture;         ///< the sources that data_paths are of; empty: one
  std::string data_dtype;                  ///< of raw ids: "uint16" or "uint32"; "": the files say it
  std::int64_t end_of_document = -1;       ///< id that ends a document; -1: one document per sequence
  bool document_ends = false;              ///< documents end where the format of the files says so
  std::int64_t prefetch = 2;               ///< optimizer steps read ahead
  std::int64_t grammar_samples = 1 << 20;  ///< distinct samples of the grammar's text per epoch

  // validation
  std::vector<std::string> eval_paths;  ///< files of the validation set
  double eval_share = 0;                ///< of the data's samples, held out; 0: none
  std::int64_t eval_sequences = 256;    ///< of the set, evaluated at a time; 0: all
  std::int64_t eval_every = 0;          ///< steps; 0: at the end alone
  bool eval_at_end = true;              ///< once after the last step

  // steps and optimizer
  std::int64_t steps = 250;  ///< optimizer steps of the whole run
  std::int64_t tokens = 0;   ///< that it reads at least [tokens]; 0: as many as its steps have
  double learning_rate = 3e-3;
  double beta1 = 0.9, beta2 = 0.95, adam_eps = 1e-8, weight_decay = 0.1;
  double clip = 1.0;                    ///< global gradient norm; 0: no clipping
  double z_loss = 0.0;                  ///< coefficient
  double balance = 0.01, router_z = 0;  ///< coefficients of the routers' losses, with experts
  load_balancing::Form balance_over = load_balancing::Form::sequence;  ///< or running
  double bias_rate = 0.001;  ///< by which routers' biases move in a step, where the model has them
  OnNonFinite on_non_finite = OnNonFinite::stop;
  std::int64_t max_skipped = 10;  ///< steps that the whole run may skip
  double capacity = 0;  ///< times the mean rows of an expert in a sequence are its most; 0: none dropped

  // schedule
  ScheduleKind schedule = ScheduleKind::wsd;
  std::int64_t warmup_steps = 20;
  std::int64_t decay_steps = 80;                ///< wsd only
  DecayShape decay_shape = DecayShape::linear;  ///< wsd only
  double final_lr_ratio = 0.1;                  ///< last learning rate / peak

  // numerics and machine
  Dtype dtype = Dtype::f32;       ///< of activations and working weights
  bool dtype_of_machine = false;  ///< that is not settled yet: see with_dtype_of
  Dtype states = Dtype::f32;  ///< with bf16 weights: of master weights and moments; bf16: no master weights
  quantise::Recipe linear = quantise::Recipe::none;  ///< of the linears of decoder blocks
  std::vector<std::string> linear_bf16_layers;       ///< "first", "last" or a number from 0: not quantised
  bool linear_experts = false;                       ///< routed experts are quantised, too
  TwinsMade linear_weights = TwinsMade::automatic;
  Device device = Device::automatic;
  AttentionBackend attention = AttentionBackend::automatic;
  Determinism deterministic = Determinism::automatic;  ///< also where libraries add in any order
  bool cuda_graph = false;                             ///< steps are captured once and replayed, on a GPU
  std::int64_t threads = 0;  ///< CPU threads per rank; 0: hardware cores / ranks of this host
  Recompute recompute = Recompute::norms_swiglu;  ///< what backward computes again instead of reading it
  std::uint64_t seed = 20251121;

  // ranks
  DataParallel data_parallel = DataParallel::replicate;
  std::int64_t shard_ranks = 0;           ///< hybrid only; 0: the ranks of a host
  std::int64_t tensor_ranks = 1;          ///< that compute each matrix together
  std::int64_t expert_ranks = 1;          ///< neighbouring ranks that hold the experts between them
  Dtype reduce = Dtype::f32;              ///< with bf16 weights: in which gradients are summed over ranks
  std::int64_t check_replicas_every = 0;  ///< steps; 0: never
  std::int64_t stall_seconds = 600;       ///< a rank may wait so long for data, a disk or a terminal

  // run folder, checkpoints, log
  std::string directory = "runs/tiny-llama";
  std::int64_t checkpoint_every = 0;  ///< steps; 0: only by the clock, at the end or on a stop
  double checkpoint_minutes = 30;     ///< since the last save or the start; 0: not by the clock
  bool checkpoint_at_end = true;      ///< after the last step
  std::int64_t checkpoint_keep = 2;
  bool keep_best = false;               ///< beside these the checkpoint of the lowest validation loss
  bool checkpoint_asynchronous = true;  ///< steps go on while a checkpoint is written
  Resume resume = Resume::never;
  std::string resume_path;
  std::int64_t log_every = 1;          ///< steps between printed lines; the record has every step
  bool log_tensorboard = false;        ///< event files for TensorBoard in the run's folder
  StepWindow profile;                  ///< steps that are traced
  std::int64_t sample_sentences = 32;  ///< sampled at the end when the data is the grammar; 0: none

  Stated stated;  ///< the other settings are defaults, or follow from others

  bool operator==(const RunConfig&) const = default;

  /// Whether the run may be saved before it ends, stops and errors aside.
  bool saves_on_the_way() const { return checkpoint_every > 0 || checkpoint_minutes > 0 || keep_best; }
};

/// Tokens of a forward pass are a multiple of it: tensor ranks hold equal parts of them, and FP8 GEMMs take
/// no others.
constexpr std::int64_t token_unit(const RunConfig& config) {
  return std::lcm(config.tensor_ranks, quantise::extent_unit(config.linear));
}

/// The batch of each step.
inline GlobalBatch global_batch(const RunConfig& config) { return {config.sequences, config.ramp}; }

/// How the sources of the run's data are mixed; null for one source. Errors: SpecError mixture_c1, c2.
std::shared_ptr<const data::Mixture> mixture_of(const RunConfig& config);

/// The steps that read train.tokens. Domain: config.tokens > 0.
inline std::int64_t steps_of_tokens(const RunConfig& config) {
  return steps_for(global_batch(config), (config.tokens - 1) / config.sequence_length + 1);
}

/// compute.dtype=auto settled: bf16 on a GPU (all that a run can use have it), f32 on a CPU.
inline RunConfig with_dtype_of(RunConfig config, bool gpu) {
  if (config.dtype_of_machine) config.dtype = gpu ? Dtype::bf16 : Dtype::f32;
  config.dtype_of_machine = false;
  return config;
}

/// Whether a sequence may hold several documents, which attention keeps apart.
inline bool has_documents(const RunConfig& config) {
  return config.end_of_document >= 0 || config.document_ends;
}

/// Whether the run has a validation set.
inline bool validates(const RunConfig& config) { return config.eval_share > 0 || !config.eval_paths.empty(); }

/// Sequences that divide those of a step, of every stage of a ramp.
inline std::int64_t common_sequences(const RunConfig& config) {
  std::int64_t common = config.sequences;
  for (const RampStage& stage : config.ramp) common = std::gcd(common, stage.sequences);
  return common;
}

/// Sequences of one micro-batch, per rank: config.micro or, when that is 0, sequences / ranks (no
/// accumulation), at least 1; with a ramp the largest that divides every stage, too. Whether it divides is
/// the business of spec/batch.
inline std::int64_t micro_sequences(const RunConfig& config, std::int64_t ranks) {
  return config.micro > 0 ? config.micro : std::max<std::int64_t>(1, common_sequences(config) / ranks);
}

/// Of the block linears of a run. A choice that is still automatic counts as `use`. Errors: SpecError
/// config_c10 (a layer that the model does not have).
LinearPrecision linear_precision(const RunConfig& config, const ModelSpec& model);

}  // namespace assay::spec
