#pragma once
// The record of a run, run.jsonl: one typed event a line. Meaning and unit of every field:
// spec/record/record.md.
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "spec/text/value.hpp"

namespace assay::spec::record {

/// Version of the schema, written in every run_start. Raised by any change that an old reader would misread.
inline constexpr std::int64_t kSchema = 1;

struct Gpu {
  std::string name;
  std::string uuid;
  std::int64_t memory_bytes = 0;  ///< [B]
  bool operator==(const Gpu&) const = default;
};

/// Where one rank runs.
struct RankPlacement {
  std::int64_t rank = 0;
  std::string host;
  std::string device;                   ///< "cpu" or "cuda:0"
  std::int64_t threads = 0;             ///< CPU threads of this rank
  std::optional<std::string> gpu = {};  ///< identity of its GPU
  // Lists as Linux has them, "0-3,8".
  std::optional<std::string> processors = {};      ///< that it may run on
  std::optional<std::string> memory_nodes = {};    ///< NUMA nodes that its memory may come from
  std::optional<std::int64_t> gpu_node = {};       ///< NUMA node of its GPU
  std::optional<std::string> gpu_processors = {};  ///< processors of that node
  bool operator==(const RankPlacement&) const = default;
};

/// sequences = micro x accumulation x ranks; tokens = sequences x sequence_length.
struct Batch {
  std::int64_t sequences = 0, micro = 0, accumulation = 0, ranks = 0, sequence_length = 0, tokens = 0;
  bool operator==(const Batch&) const = default;
};

/// The data-parallel layout (spec/parallel/data_layout.md).
struct RunLayout {
  std::string data;              ///< "replicate", "zero1", "shard", "hybrid"
  std::int64_t shard_ranks = 0;  ///< ranks that hold one copy of the optimizer's state between them
  std::string reduce;            ///< type in which gradients are summed over ranks: "f64", "f32", "bf16"
  bool operator==(const RunLayout&) const = default;
};

struct ExpectedLoss {
  double mean = 0;                ///< [nats per token]
  double standard_deviation = 0;  ///< [nats per token]
  bool operator==(const ExpectedLoss&) const = default;
};

struct Data {
  std::string source;  ///< "grammar" or "files"
  std::string description;
  std::vector<std::string> files;
  std::optional<double> floor;  ///< least cross-entropy that any model can reach [nats per token]
  bool operator==(const Data&) const = default;
};

/// First event of every start of the program; a resumed run has one more.
struct RunStart {
  std::int64_t schema = kSchema;
  std::string time;  ///< UTC, ISO 8601
  std::string version;
  std::optional<std::string> commit;
  std::string host, os, cpu;
  std::int64_t cores = 0;
  std::int64_t memory_bytes = 0;  ///< of the host [B]
  std::vector<Gpu> gpus;
  std::vector<RankPlacement> ranks;
  std::string model;
  std::optional<std::string> model_definition;  ///< the whole model, as spec/models writes it (TOML)
  std::int64_t vocab = 0;
  std::int64_t parameters = 0;
  std::int64_t flops_per_token = 0;  ///< forward and backward, convention "exact" [flop]
  /// Of all ranks together, dense, in the precisions that compute (spec/flops/by_precision.md) [flop/s].
  std::optional<double> peak_flops;
  std::optional<double> executed_peak_flops;  ///< of what runs, recompute included, where that is another mix
  Batch batch;
  std::optional<RunLayout> layout;
  std::int64_t steps = 0;
  std::optional<ExpectedLoss> expected_first_loss;
  std::optional<std::int64_t> planned_memory_bytes;  ///< peak of a step on one device (spec/plan/plan.md) [B]
  /// Of several expert ranks: rows that a rank's experts get over their mean, up to which that holds, and the
  /// most that routing can bring.
  std::optional<double> planned_load = {}, most_load = {};
  std::optional<std::string> attention;  ///< the kernel that computes it: "loops", "math", "cudnn", "flash"
  std::optional<std::int64_t> tensor_ranks;  ///< of which each data rank is made, where several
  std::optional<std::int64_t> expert_ranks;  ///< that hold the experts between them, where several
  std::optional<std::string> linear;         ///< what linears of blocks compute in, where that is FP8
  std::optional<bool> deterministic;  ///< whether the run, repeated on this machine, gives the same bits
  Data data;
  std::optional<std::string> validation;  ///< the validation set in one sentence
  std::vector<std::pair<std::string, Value>> settings;
  bool operator==(const RunStart&) const = default;
};

/// What a step was of one source of a mixture, over all ranks.
struct StepSource {
  std::string name;
  std::int64_t tokens = 0, valid_tokens = 0;
  std::optional<double> loss;  ///< cross-entropy over its valid tokens [nats per token]; nothing without any
  double epochs = 0;           ///< that the run has read of it, this step included
  bool operator==(const StepSource&) const = default;
};

/// Wall-clock seconds of rank 0; they add up to the step's seconds. `checkpoint`: of the save before it.
struct Phases {
  double data_wait = 0, forward = 0, backward = 0, reduce = 0, clip = 0, update = 0, checkpoint = 0,
         other = 0;
  bool operator==(const Phases&) const = default;
};

struct Step {
  std::int64_t step = 0;  ///< 1 is the first
  double loss = 0;        ///< cross-entropy over all valid tokens, without z-loss [nats per token]
  double z_loss = 0;      ///< its part of the objective [nats per token]
  std::optional<double> balance_loss =
      {};  ///< of routers, without its coefficient, summed over sparse layers
  std::optional<double> router_z_loss = {};  ///< likewise [nats^2]
  std::optional<double> load_balance_worst =
      {};  ///< largest load of an expert over the mean, worst sparse layer
  std::optional<double> load_balance_mean = {};  ///< the same, mean over sparse layers
  std::optional<double> router_entropy = {};     ///< mean over tokens and sparse layers [nats]
  std::optional<double> dropped_choices = {};    ///< share of all choices, where a capacity is set
  double gradient_norm = 0;
  double clip_coefficient = 0;
  double learning_rate = 0;
  std::int64_t tokens = 0;
  std::int64_t valid_tokens = 0;
  double seconds = 0;
  std::optional<double> elapsed_seconds =
      {};  ///< since this start of the program began; absent in records of earlier versions [s]
  double tokens_per_second = 0;
  std::optional<double> mfu;             ///< fraction of 1
  std::optional<double> hfu;             ///< fraction of 1
  std::optional<double> executed_flops;  ///< matmul FLOPs that all ranks ran [flop]
  Phases phases;
  std::optional<std::vector<StepSource>> sources = {};  ///< of a mixture
  std::string sample_hash;                  ///< hexadecimal, of the ids of the step's samples in order
  std::optional<std::string> weights_hash;  ///< hexadecimal, of the weights after the step, once compared
  std::int64_t resident_bytes = 0;          ///< of rank 0's process [B]
  std::int64_t device_peak_bytes = 0;       ///< of rank 0's GPU; 0 on the CPU [B]
  bool operator==(const Step&) const = default;
};

struct Warning {
  std::optional<std::int64_t> step;
  std::string code;  ///< snake_case, e.g. "first_loss"
  std::string text;
  bool operator==(const Warning&) const = default;
};

struct Checkpoint {
  std::int64_t step = 0;
  std::string path;
  std::int64_t bytes = 0;  ///< [B]
  double seconds = 0;      ///< from its begin until it was committed [s]
  // Absent in records of earlier versions.
  std::optional<bool> asynchronous;        ///< steps went on while it was written
  std::optional<double> copy_seconds;      ///< of the rank that took longest, from the device to the host [s]
  std::optional<double> write_seconds;     ///< of the rank that took longest [s]
  std::optional<double> delay_seconds;     ///< for which steps waited [s]
  std::optional<std::int64_t> host_bytes;  ///< of the copies on all ranks' hosts [B]
  bool operator==(const Checkpoint&) const = default;
};

/// A setting that differs from the run that saved the checkpoint.
struct ChangedSetting {
  std::string name;
  Value before, now;
  std::optional<bool> asked = {};  ///< it may alter results, and was asked for by name; absent: it may not
  bool operator==(const ChangedSetting&) const = default;
};

struct ResumeFrom {
  std::int64_t step = 0;  ///< steps already done
  std::string path;
  std::optional<std::vector<ChangedSetting>> changed = {};  ///< absent in records of earlier versions
  bool operator==(const ResumeFrom&) const = default;
};

/// A step whose loss or gradient was not finite, and which changed nothing but the place in the data.
struct SkippedStep {
  std::int64_t step = 0;  ///< 1 is the first
  std::string reason;     ///< rank and tensor
  double loss = 0;        ///< [nats per token]
  double gradient_norm = 0;
  double learning_rate = 0;  ///< that it would have had
  std::int64_t tokens = 0;   ///< read and not trained on
  double seconds = 0;        ///< also of the search for the tensor [s]
  std::string sample_hash;   ///< hexadecimal, of the ids of the step's samples in order
  std::int64_t skipped = 0;  ///< steps of the run so far, this one too
  std::int64_t allowed = 0;  ///< train.max_skipped
  bool operator==(const SkippedStep&) const = default;
};

/// Weights that a run starts from instead of initial ones. Written before the first step.
struct WeightsFrom {
  std::string path;             ///< folder
  std::string content;          ///< hash of the parameters that were read (spec/checkpoint/weight_files.md)
  std::string types;            ///< of the tensors, as safetensors names them: "BF16, F32"
  std::int64_t parameters = 0;  ///< elements
  std::int64_t bytes = 0;       ///< of the parameters in the files [B]
  bool operator==(const WeightsFrom&) const = default;
};

/// Tensors of one name that are live at the peak.
struct PlannedTensors {
  std::string name;
  std::string purpose;     ///< "state", "inputs", "activations", "head" or "temporaries"
  std::int64_t count = 0;  ///< how many
  std::int64_t bytes = 0;  ///< of all [B]
  bool operator==(const PlannedTensors&) const = default;
};

/// Planned and measured memory of a step on rank 0's device. Written after the first step of a start.
struct Memory {
  std::int64_t step = 0;
  std::string device;                          ///< "cpu" or "cuda:0"
  std::int64_t capacity_bytes = 0;             ///< of the device [B]
  std::int64_t planned_bytes = 0;              ///< at the peak [B]
  std::int64_t state_bytes = 0;                ///< of these, there for the whole run [B]
  std::string moment;                          ///< of the peak
  std::optional<std::int64_t> measured_bytes;  ///< peak of the GPU's tensors; absent on the CPU [B]
  std::optional<double> load = {};  ///< the largest of rank 0's experts so far, where several ranks hold them
  std::vector<PlannedTensors> tensors;  ///< they add up to planned_bytes
  bool operator==(const Memory&) const = default;
};

struct Sample {
  std::string text;
  bool accepted = false;          ///< the grammar derives it
  std::optional<bool> sum_right;  ///< absent: it holds no sum
  bool operator==(const Sample&) const = default;
};

struct Samples {
  std::int64_t step = 0;
  std::vector<Sample> samples;
  std::int64_t judged = 0, accepted = 0, sums = 0, sums_right = 0;
  bool operator==(const Samples&) const = default;
};

/// Loss on data that the run does not train on, between two steps (spec/data/validation_set.md).
struct Validation {
  std::int64_t step = 0;                ///< steps done
  double loss = 0;                      ///< cross-entropy alone [nats per token]
  double perplexity = 0;                ///< e^loss
  std::optional<double> bits_per_byte;  ///< where the data says how many bytes its tokens are
  std::int64_t sequences = 0;
  std::int64_t valid_tokens = 0;
  std::string set_hash;  ///< hexadecimal, of the token ids that were evaluated
  bool lowest = false;   ///< no earlier loss of this set was as low
  double seconds = 0;    ///< [s]
  bool operator==(const Validation&) const = default;
};

/// One row of a profile: an op in a pass, a collective, or the time of a phase in which none of them ran.
struct ProfiledPart {
  std::string name;    ///< "qkv weight gradient", "all_reduce", "outside of ops: update"
  std::string kind;    ///< "op", "collective" or "outside"
  double calls = 0;    ///< in a step, mean; 0 outside of ops
  double seconds = 0;  ///< in a step, mean [s]
  bool operator==(const ProfiledPart&) const = default;
};

/// Steps that were traced, and rank 0's time in them by op. Written after the last of them.
struct Profile {
  std::int64_t first_step = 0, last_step = 0;  ///< both of them
  std::string path;                            ///< folder of the traces
  std::optional<std::string> trace;            ///< file of rank 0 there; absent where another profiler traced
  double seconds = 0;                          ///< of a step, mean; the parts add up to it [s]
  std::vector<ProfiledPart> parts;             ///< longest first
  bool operator==(const Profile&) const = default;
};

enum class EndReason { done, saved, non_finite, error };

/// Tokens over all of a start's wall-clock time, and its parts, which add up to it.
struct Goodput {
  double tokens_per_second = 0;
  double seconds = 0;  ///< since the first instruction of rank 0's trainer
  double start_up = 0, steps = 0, data_wait = 0, saves = 0, evaluation = 0, other = 0;
  bool operator==(const Goodput&) const = default;
};

/// Wall-clock seconds of all starts of a run and what they went into; the parts add up to `seconds`.
struct RunGoodput {
  std::int64_t starts = 0;
  std::int64_t unended = 0;  ///< starts that left no end: only their steps are known, and counted
  double seconds = 0;
  double productive = 0;  ///< steps that the run rests on, without data_wait
  double data_wait = 0, start_up = 0, saves = 0, evaluation = 0;
  double skipped = 0;  ///< steps that were not finite
  double redone = 0;   ///< steps after the checkpoint that a later start resumed from
  double other = 0;
  bool operator==(const RunGoodput&) const = default;
};

struct RunEnd {
  EndReason reason = EndReason::done;
  std::int64_t exit_code = 0;
  std::optional<std::string> message;  ///< why; of a run that is done, that it was not saved
  std::int64_t steps = 0;              ///< of this start of the program
  std::int64_t tokens = 0;
  double seconds = 0;
  double tokens_per_second = 0;
  std::optional<double> final_loss;  ///< mean over the last final_steps steps [nats per token]
  std::optional<std::int64_t> final_steps;
  std::optional<double> floor;            ///< [nats per token]
  std::optional<double> gap_closed;       ///< (log V - final_loss) / (log V - floor)
  std::optional<Goodput> goodput;         ///< absent in records of earlier versions
  std::optional<RunGoodput> run_goodput;  ///< likewise
  bool operator==(const RunEnd&) const = default;
};

using Event = std::variant<RunStart, Step, Warning, Checkpoint, ResumeFrom, Samples, RunEnd, Memory,
                           Validation, WeightsFrom, SkippedStep, Profile>;

/// "run_start", "step", "warning", "checkpoint", "resume", "samples", "run_end", "memory", "validation",
/// "weights", "skipped", "profile".
std::string event_name(const Event& event);

/// Names of all events in the order of Event.
const std::vector<std::string>& event_names();

/// Names of an event's fields, nested ones with dots and lists with [], e.g. "batch.micro", "gpus[].uuid".
/// Errors: SpecError record_c1 for an unknown event.
std::vector<std::string> field_names(const std::string& event);

}  // namespace assay::spec::record
