#pragma once
// A training run drawn at random, every number of it known, and the log that its trainer would write. Tests
// of the readers read the log back; tests of the audit change one field (a fault) first and look for its
// name.
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "spec/audit/run_record.hpp"
#include "spec/model/model_spec.hpp"

namespace assay::tests {

enum class LogFormat {
  assay,
  llm_tii,
  llm_tii_json,
  torchtitan,
  kempnerforge,
  megatron,
  nanogpt,
  llmc,
  llmq,
  llmq_json,
  hugging_face,          ///< trainer_state.json
  hugging_face_console,  ///< printed dictionaries
  csv,
  json_lines,
  nanotron,
  build_nanogpt,
};
constexpr std::size_t log_formats = 16;
std::string_view to_string(LogFormat format);  ///< "llm_tii_json"

/// Whose tokens, or whose peak: of one GPU, of one data-parallel rank, of the whole run.
enum class Whose { gpu, rank, all };

/// How the trainer makes what it prints out of what happened. `documented` gives its documented way; a fault
/// changes a field.
struct Accounting {
  Whose rate = Whose::all;               ///< tokens that the printed tokens/s counts
  Whose numerator = Whose::all;          ///< tokens that MFU and the achieved FLOP/s count
  Whose peak_of = Whose::all;            ///< GPUs whose peak MFU divides by, and that is printed as "peak"
  double peak = 0;                       ///< of one GPU, as the trainer believes [flop/s]
  double flops_per_token = 0;            ///< of its convention [flop]
  std::int64_t accumulation = 0;         ///< micro-batches per step that tokens/s and MFU count
  std::int64_t accumulation_stated = 0;  ///< printed as setting, and in every setting derived from it
  double rate_factor = 1;                ///< printed tokens/s over the one so counted (1e-3, 1.024, padding)
  double mfu_factor = 1;                 ///< printed MFU likewise
  double time_factor = 1;                ///< printed step time over the true one (1e3: ms as s)
  double memory_factor = 1;              ///< printed bytes over the true ones (1.0737: GiB as GB)
};

struct SimulatedStep {
  double seconds = 0;  ///< true wall clock
  double loss = 0;     ///< true mean over all ranks [nats]
  double gradient_norm = 0;
  double learning_rate = 0;  ///< by the trainer's own schedule
  bool skipped = false;      ///< its gradients overflowed (fp16 with loss scaling): no update was made
};

struct SimulatedRun {
  LogFormat format = LogFormat::assay;
  spec::ModelSpec model;  ///< of nanoGPT and llm.c: dimensions of a GPT-2 with that V, D, L, H, context
  bool gpt2 = false;
  double parameters = 0;  ///< as its trainer counts and prints them
  double parameters_nonembedding = 0;
  std::string gpu;                         ///< as drivers print it
  double peak_dense = 0, peak_sparse = 0;  ///< bf16, of one GPU [flop/s]
  double gpu_memory = 0;                   ///< [B]
  std::int64_t gpus = 1, data_parallel = 1, tensor_parallel = 1, pipeline_parallel = 1;
  std::int64_t micro = 1, accumulation = 1;  ///< performed
  std::int64_t sequence_length = 0;
  std::int64_t log_every = 1;
  std::string schedule;   ///< "cosine", "linear", "constant", "wsd", "inverse-square-root"
  std::string wsd_decay;  ///< of "wsd": "linear", "cosine", "exponential", "minus_sqrt"
  std::int64_t wsd_decay_steps = 0;
  bool fp16 = false;  ///< with loss scaling, else bf16
  double highest_rate = 0, lowest_rate = 0;
  std::int64_t warmup_steps = 0, decay_steps = 0;
  double first_rate = 0;               ///< where the warm-up begins
  bool batch_in_tokens = false;        ///< of nanotron: printed by a version of 2025, whose lines differ
  std::int64_t data_passes = 1;        ///< of Hugging Face: over the data, each of as many steps
  double short_by = 0;                 ///< sequences that the last step of each of them lacks
  bool by_steps = false;               ///< of Hugging Face: the data has no length, the plan is in steps
  bool header_lost = false;            ///< of torchtitan: nothing stands before the first step
  bool prints_sequences_rate = false;  ///< of Megatron's descendants
  /// Of Megatron: how its arguments say the schedule.
  enum class ScheduleBy { iterations, share_of_decay, samples } schedule_by = ScheduleBy::iterations;
  double loss_floor = 0, expected_first_loss = 0, expected_first_loss_deviation = 0;
  double memory_allocated = 0, memory_peak = 0, memory_reserved = 0;  ///< [B]
  double seconds_outside = 0;                                         ///< start-up, saving [s]
  std::int64_t resumed_at =
      0;                   ///< of nanoGPT and llm.c: the program started again before that step; 0: never
  int digits_of_time = 0;  ///< of csv: significant ones of a step's seconds, beside a clock; 0: ms
  std::vector<SimulatedStep> steps;  ///< every step done, logged or not
  Accounting accounting;

  double sequences() const;  ///< of all ranks in one optimizer step, as performed
  double tokens() const;     ///< likewise
  /// What the first `done` steps lack for the short last batches of passes over the data. [sequences]
  double lacking(double done) const;
  std::int64_t first_number() const;  ///< 0 or 1: how the trainer numbers its first step
};

/// One line of the log, or what stands for it; base units as in RunRecord, not yet rounded.
struct ReportedStep {
  std::array<std::optional<double>, spec::audit::field_count> fields;
  const std::optional<double>& operator[](spec::audit::Field field) const {
    return fields[static_cast<std::size_t>(field)];
  }
  std::optional<double>& operator[](spec::audit::Field field) {
    return fields[static_cast<std::size_t>(field)];
  }
};

/// What our own record says of a step's memory. [B]
struct ReportedMemory {
  double capacity = 0, planned = 0, planned_at_start = 0, state = 0, parts = 0, measured = 0;
};

/// What the log will say. A fault may change it too (steps dropped, doubled, made NaN ...).
struct Report {
  std::array<std::optional<double>, spec::audit::setting_count> settings;
  std::vector<ReportedStep> steps;
  ReportedMemory memory;
  double epochs = 1;          ///< of Hugging Face's state: passes over the data that its lines count, of 1
  double first_micro_of = 1;  ///< of llm.c's table and KempnerForge's configuration: the micro-batch that
                              ///< they say over that of the line behind them
  double decayed_parameters_of = 1;  ///< of nanoGPT: those printed of decayed tensors over the true ones
  const std::optional<double>& operator[](spec::audit::Setting setting) const {
    return settings[static_cast<std::size_t>(setting)];
  }
  std::optional<double>& operator[](spec::audit::Setting setting) {
    return settings[static_cast<std::size_t>(setting)];
  }
};

/// A truthful run of the trainer that writes `format`: a pure function of both, the same on every machine.
/// `steps` steps, 20 to 120 when it is 0; its accounting is the documented one.
SimulatedRun simulate(LogFormat format, std::uint64_t seed, std::int64_t steps = 0);

/// Of `simulate`, of format csv: logs every n-th step, which is slower than the others by what logging takes
/// (up to a tenth of them), and prints its seconds to 1 to 5 digits beside a clock.
void log_seldom(SimulatedRun& run, std::uint64_t seed);

/// Whether the learning rate is warmed up, kept, and decayed at the end.
bool is_wsd(const SimulatedRun& run);
/// The rate of step `i` (the first is 0) by the trainer's own formula, skipped steps aside.
double scheduled_rate(const SimulatedRun& run, std::int64_t i);

/// FLOPs per token of that format's convention at the run's model and length. [flop]
double convention_flops(LogFormat format, const SimulatedRun& run);
Accounting documented(const SimulatedRun& run);

/// The numbers that the trainer prints: the run seen through its accounting, only those that the format
/// holds.
Report report(const SimulatedRun& run);

/// The text of the log: numbers rounded as that trainer rounds them.
std::string render(const SimulatedRun& run, const Report& report);
inline std::string render(const SimulatedRun& run) { return render(run, report(run)); }

/// What `assay audit` must be told to read it: {"--map", "step=iter,..."} for csv and json_lines, and
/// {"--set", "gpus=8,..."} for what the log does not hold.
struct ReadArguments {
  std::string map, set;
};
ReadArguments read_arguments(const SimulatedRun& run);

/// How terminals, launchers and file systems bend a log; the numbers stay. `truncated` cuts the last line.
struct Disguise {
  bool colours = false, crlf = false, byte_order_mark = false, progress_bars = false, chatter = false,
       truncated = false;
  enum class Ranks { none, torchrun, srun, mpirun } ranks = Ranks::none;  ///< prefix of every line
};
std::string disguise(const std::string& log, const Disguise& disguise, std::uint64_t seed);

}  // namespace assay::tests
