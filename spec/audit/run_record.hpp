#pragma once
// What a training log says, in one form for every trainer: numbers as printed, in base units, each with its
// line. Readers fill it (spec/audit/readers/), invariants judge it (spec/audit/invariants.hpp), and a program
// of others can build one to be checked in its own tests.
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "spec/audit/printed.hpp"
#include "spec/interval.hpp"
#include "spec/model/model_spec.hpp"

namespace assay::spec::audit {

/// Numbers that a log prints once for a run. Units: tokens, sequences, seconds, bytes, flop/s; shares of 1.
enum class Setting {
  sequence_length,          ///< T
  micro,                    ///< sequences of one rank in one forward pass
  accumulation,             ///< micro-batches of one rank between two updates, as the log states it
  accumulation_configured,  ///< the configured number, where a log also states what it made of it
  sequences,                ///< global sequences of one optimizer step
  tokens_per_step,          ///< global tokens of one optimizer step
  gpus,                     ///< devices of the run
  data_parallel,            ///< ranks that read different data
  tensor_parallel,
  pipeline_parallel,
  context_parallel,
  expert_parallel,
  parameters,  ///< as printed; which ones are counted is a reading
  parameters_nonembedding,
  layers,
  width,
  heads,
  kv_heads,
  head_dim,
  ffn,
  vocab,
  flops_per_token,      ///< [flop]
  ffn_flops_per_layer,  ///< of one layer's MLP, forward, over one sequence [flop]
  peak_flops,           ///< as printed, of one GPU or of all: a reading [flop/s]
  gpu_memory,           ///< of one GPU [B]
  learning_rate,        ///< highest of the schedule
  learning_rate_min,
  learning_rate_start,  ///< where the warm-up begins
  warmup_steps,
  decay_steps,      ///< step at which the decay ends
  wsd_decay_steps,  ///< steps of the decay at the end of a "wsd" schedule
  // Of a run that is planned by sequences, so that its schedule goes by those since the start:
  train_samples,
  warmup_samples,
  decay_samples,
  wsd_decay_samples,
  max_steps,
  expected_tokens_per_second_half_mfu,  ///< "expected tokens/s at 50 % MFU"
  total_seconds,                        ///< wall clock of the run
  total_tokens,
  average_seconds,  ///< mean step time that a summary prints
  average_mfu,
  average_tokens_per_second,
  average_steps_per_second,      ///< optimizer steps over the wall clock of the run
  average_sequences_per_second,  ///< sequences over the wall clock of the run
  average_loss,                  ///< mean over the run that a summary prints [nats]
  final_loss,
  final_step,
  loss_floor,                     ///< least cross-entropy that any model can reach on this data [nats]
  expected_first_loss,            ///< what the trainer expected of its untrained model [nats]
  expected_first_loss_deviation,  ///< standard deviation of that [nats]
  total_flops,                    ///< of the run, as Hugging Face counts: 6 x tokens x parameters [flop]
  end_of_document,                ///< token at which attention stops; below 0: a sequence is one document
  final_loss_steps,               ///< last steps that final_loss is the mean of
  gap_closed,                     ///< share of the way from log V to loss_floor that final_loss has gone
  planned_epochs,                 ///< passes over the data that are begun at the most
  completed_steps,                ///< of a run that says that it ended as planned
  count_
};

/// Numbers that a log prints for a step (or a window of steps that ends there).
enum class Field {
  step,  ///< number of the optimizer step as printed
  rank,  ///< rank that printed the line
  loss,  ///< [nats per token]
  gradient_norm,
  learning_rate,
  seconds,            ///< of one step [s]
  elapsed,            ///< since the start of the run, or a time stamp [s]
  tokens_per_second,  ///< scope (one GPU, one rank, all) is a reading unless Format states it [1/s]
  tokens,             ///< of this step
  tokens_total,       ///< since the start
  sequences_total,    ///< since the start ("consumed samples")
  mfu,
  hfu,                    ///< shares of 1
  flops_rate,             ///< achieved [flop/s], scope as tokens_per_second
  memory_allocated,       ///< [B]
  memory_peak,            ///< [B]
  memory_reserved,        ///< [B]
  flops_per_token,        ///< [flop]
  peak_flops,             ///< [flop/s]
  skipped,                ///< steps since the start whose update was left out: gradients overflowed (fp16)
  step_sequences,         ///< global sequences of this step, as its line says beside what the settings say
  planned_steps,          ///< of the whole run, as the line says behind the step's number
  memory_share,           ///< of the device's memory that is in use: reserved, where that is printed
  not_finite,             ///< steps since the line before whose loss was no number
  valid_tokens,           ///< of the step's tokens, those whose loss counts
  phases,                 ///< times of the parts of the step, added up [s]
  epoch,                  ///< passes over the data since the start
  sequences_per_second,   ///< of all GPUs [1/s]
  step_length,            ///< tokens of each sequence of this step, as its line says
  gpu_tokens_per_second,  ///< of one GPU, beside tokens_per_second of all [1/s]; alone it is that, with
                          ///< Scope::gpu
  hardware_flops_rate,    ///< of all that was executed, scope as flops_rate [flop/s]
  count_
};

constexpr std::size_t setting_count = static_cast<std::size_t>(Setting::count_);
constexpr std::size_t field_count = static_cast<std::size_t>(Field::count_);
std::string_view to_string(Setting setting);  ///< "tokens_per_step"
std::string_view to_string(Field field);      ///< "tokens_per_second"
std::optional<Setting> setting_named(std::string_view name);
std::optional<Field> field_named(std::string_view name);

struct Step {
  std::int64_t line = 0;  ///< of its first number
  std::array<std::optional<Printed>, field_count> fields;

  const std::optional<Printed>& operator[](Field field) const {
    return fields[static_cast<std::size_t>(field)];
  }
  std::optional<Printed>& operator[](Field field) { return fields[static_cast<std::size_t>(field)]; }
};

/// Over what a printed rate runs.
enum class Scope { unknown, gpu, all };

/// What the trainer that wrote the log is documented to mean; a log may still contradict it.
struct Format {
  std::string name;  ///< "assay", "llm_tii", "torchtitan", "kempnerforge", "megatron", "nanogpt" ...
  Scope tokens_per_second = Scope::unknown;
  Scope flops_rate = Scope::unknown;
  std::string convention;           ///< of spec/flops/conventions.hpp; empty when not stated
  bool first_step_is_zero = false;  ///< numbering of steps
  bool rate_since_start = false;    ///< tokens/s are the tokens since the start over the time since then
  /// Fields printed as a mean over several steps (running, or of a window), not of the step alone.
  std::vector<Field> averaged;
};

/// A line that a reader took for part of the log and could not read.
struct UnreadLine {
  std::int64_t line = 0;
  std::string text;  ///< at most 200 bytes, escaped
};

/// A line that may be a step's, or several steps' that were not kept apart, and cannot be read.
struct HiddenSteps {
  std::int64_t line = 0;
  std::int64_t most = 0;  ///< that may stand in it
  bool operator<(const HiddenSteps& other) const { return line < other.line; }
};

/// Step lines of another trainer in the same file, which are not read.
struct ForeignLines {
  std::string format;  ///< as Format::name
  std::int64_t count = 0;
  std::int64_t line = 0;  ///< of the first
};

/// Lines that say settings behind a prefix which is not known, and could not be taken off: they are not read.
struct PrefixedSettings {
  std::string prefix;  ///< of the first
  std::int64_t count = 0;
  std::int64_t line = 0;  ///< of the first
};

/// Lines that a terminal, a viewer or a tool cut or wrapped.
struct CutLines {
  std::int64_t count = 0;   ///< cut at their end, of which the last part is not read: its number may be cut
  std::int64_t line = 0;    ///< the first of these
  std::int64_t joined = 0;  ///< rests of wrapped lines, read with the line that they go on with
  std::int64_t column = 0;  ///< where lines end [characters]; 0: at none, but in an ellipsis
};

/// Losses that JSON says to be null.
struct NullLosses {
  std::int64_t count = 0;
  std::int64_t line = 0;    ///< of the first
  std::int64_t at_end = 0;  ///< the last ones, taken for losses that are no numbers
};

/// A distance between the numbers of two logged steps, in a log of which not every step is kept.
struct StepGap {
  double distance = 0;  ///< of a step and the highest number before it
  std::int64_t count = 0;
  double before = 0;      ///< the number before its first place
  std::int64_t line = 0;  ///< of its first place, behind it
};

/// A place where the log itself says that the program started again.
struct Restart {
  std::int64_t line = 0;
  std::optional<std::int64_t> step;  ///< steps already done, as stated: the next one has the next number
};

/// Steps that were done, since the run was resumed behind them, and whose lines are not there.
struct MissingSteps {
  std::int64_t first = 0, last = 0;
  std::int64_t line = 0;  ///< that says so
};

/// What the command line stated of a run (or a program that completes a log): an option, which may be the one
/// that is wrong.
struct GivenOption {
  std::string name;                   ///< of a setting or field, or "model", "gpu", "device", "dtype" ...
  std::string option;                 ///< "--gpus 8", "--set gpus=8", "--map seconds=time_ms:ms"
  std::optional<Printed> log_number;  ///< of a setting: what the log says, where the option took its place
  std::string log_text;               ///< of a name: likewise
};

/// The MLP of a model's blocks, where its trainer has several.
struct BlockMlp {
  Mlp mlp = Mlp::swiglu;
  std::optional<Experts> experts;
};

/// Tensors of parameters that an optimizer is given, in two groups: matrices and tables, whose weights decay,
/// and gains and biases.
struct ParameterTensors {
  double matrices = 0, matrix_entries = 0;  ///< their number, and their parameters
  double vectors = 0, vector_entries = 0;
  std::int64_t line = 0;  ///< of the first of both
};

/// Parameters that the first rank of a model which is cut over ranks counts.
struct RankParameters {
  Printed count;
  std::vector<double> of_shape;  ///< what the stated shape makes of it, the likeliest first; empty: not known
};

/// What a program says of the memory that it planned and took, once after it started [B].
struct MemoryOfStart {
  std::int64_t line = 0;
  double step = 0;  ///< behind which it stands
  double planned = 0, parts = 0, state = 0, capacity = 0;
  std::optional<double> planned_at_start, measured;
  /// Of the device, as the step before it says: the same counter, which starts anew with the program.
  std::optional<double> peak_before;
  bool warned = false;    ///< that plan and measurement differ
  bool followed = false;  ///< by a line that could be read: what the program warns of stands right behind it
};

/// What came of one of the identities of our own record (identities.hpp), over all of its places.
struct HeldIdentity {
  std::int64_t judged = 0, contradicted = 0;
  double printed = 0;               ///< of the first place that contradicts, or else of the last
  Interval recomputed{0, 0};        ///< likewise
  std::string why;                  ///< what does not follow there
  std::vector<std::int64_t> lines;  ///< of the first places that contradict (at most 8)
};

/// A setting that another line of the same header says otherwise.
struct SaidTwice {
  Setting setting = Setting::count_;
  Printed first, then;
};

/// A number of a step that the documentation of its format rules out, and no relation holds.
struct RuledOutNumber {
  std::string name;
  double value = 0, least = 0, most = 0;
  std::int64_t line = 0;
};

/// What a saved state says of how far its run is, beside its lines.
struct SavedState {
  std::optional<Printed> step, epoch;   ///< done when it was saved
  std::optional<Printed> summary_step;  ///< of the summary of the whole run
};

/// What a log says of its run beside the steps.
struct RunFacts {
  std::string origin;  ///< path, or what the program that built it says
  Format format;
  std::array<std::optional<Printed>, setting_count> settings;
  std::string model;                    ///< as printed or found; empty when the log names none
  std::optional<ModelSpec> definition;  ///< of the model, where the log holds it whole
  std::optional<bool> tied_embeddings;  ///< whether the head is the embedding, where the log says so
  std::optional<bool> qk_norm;          ///< whether queries and keys are normed, where the log says so
  std::optional<Norm> norm;             ///< of a block's inputs, where the log says which
  std::optional<BlockMlp> mlp;          ///< beside the settings, of a trainer that has several, where said
  std::optional<ParameterTensors> tensors;   ///< of the whole model, where said
  std::optional<RankParameters> first_rank;  ///< where it is not the whole model's
  std::vector<MemoryOfStart> memory;         ///< of our own record
  std::vector<HeldIdentity> identities;      ///< of our own record, by Identity; empty: none was held
  std::vector<RuledOutNumber> ruled_out;     ///< of our own record: the first 1,000
  SavedState saved;                          ///< of Hugging Face's trainer_state.json
  /// The file that defined the model, where the log says that it was no built-in one and does not hold it
  /// whole: a model that is known by the same name need not be the one that ran.
  std::string model_file;
  /// Settings that two lines of a header say, however alike; and those of which they say two numbers.
  std::int64_t settings_said_again = 0;
  std::vector<SaidTwice> said_twice;
  std::string gpu;     ///< as printed ("NVIDIA B200"); empty when the log names none
  std::string device;  ///< "cpu" where the log says that no GPU computes; else empty
  std::string dtype;   ///< that computes ("bf16", "fp8"); empty when not stated
  std::string linear;  ///< compute.linear of our own records, where it is not bf16, and the layers left out
  std::string linear_bf16_layers;  ///< separated by commas
  std::string linear_experts;      ///< "on", "off" or, of a record from before that key, empty
  std::string schedule;  ///< "cosine", "linear", "constant", "wsd", "inverse-square-root", as the trainer
                         ///< calls it; empty when not stated
  std::string parallelism;
  std::string
      objective;        ///< "rewards" where the loss is no cross-entropy (preferences, policies); else empty
  std::string weights;  ///< "new" where the log says that they are no checkpoint's; empty when not stated

  /// Settings and names that do not stand in the log, or not so: each has line 0. All others are the log's.
  std::vector<GivenOption> stated;
  std::vector<GivenOption> mapped;  ///< fields whose column or key the command line named

  std::int64_t steps_seen = 0;  ///< of all ranks that say which they are
  /// Of a long log, steps whose numbers do not stand to one another as the first ones' do (ReadOptions::
  /// keep_steps_apart): kept, with those before and behind, but for those left out beyond the most.
  std::int64_t steps_apart = 0, steps_left_out = 0;
  /// Ranks that print steps: those that say which they are, or as many as print each step where none does (of
  /// which the first line stands for the step).
  std::int64_t ranks = 1;
  bool printed_twice = false;  ///< every step stood twice in a row, all numbers alike: one of each is kept
  bool ranks_maybe_copies = false;  ///< as UnnamedRanks::maybe_copies
  std::int64_t steps_of_rank = 0;   ///< of the first of them; 0 for a record built by a program
  /// Of the first rank's steps, all of them, but for the first distance; at most 64 different ones.
  std::vector<StepGap> gaps;
  std::vector<Restart> restarts;  ///< not the first start
  /// The lines' count of skipped steps is 0 whatever the optimizer leaves out: a step that has no count says
  /// nothing of it.
  bool skips_untold = false;
  bool validates = false;  ///< there are lines of validations, whose time no rate of a step holds
  /// Lines of evaluations and of saving, whose time no step of their trainer holds; rising. The first
  /// `kept_pauses`; where there are more, `validates` is set.
  std::vector<std::int64_t> pauses;
  static constexpr std::size_t kept_pauses = 8192;
  double line_interval = 0;  ///< steps from line to line, where the log says so [steps]

  std::int64_t lines = 0;
  std::int64_t unread_lines = 0;          ///< all of them
  std::vector<UnreadLine> unread_quotes;  ///< the first 10
  std::vector<ForeignLines> foreign_lines;
  std::optional<PrefixedSettings> settings_behind;
  CutLines cut_lines;
  NullLosses null_losses;
  /// Lines that say that others were left out ("..."), in their order. Of more than so many the first ones:
  /// behind the last of these any line may say it.
  static constexpr std::size_t most_elisions = 4096;
  std::vector<std::int64_t> elisions;
  std::vector<HiddenSteps> hidden_steps;  ///< in their order; not more either
  std::vector<MissingSteps> missing;      ///< of our own record: the first 1,000
  bool truncated = false;                 ///< the last line has no end, or a document is cut
  /// A later start of the run before it in the log, resumed with other settings, by which its steps are
  /// judged.
  bool later_start = false;
};

struct RunRecord : RunFacts {
  /// In the order of the log. All of them up to `kept_steps`; of longer logs the first and last quarter of
  /// that number, evenly spaced ones between, and every one that a step invariant contradicts (at most 1,000
  /// of those).
  std::vector<Step> steps;
  static constexpr std::size_t kept_steps = 8192;

  const std::optional<Printed>& operator[](Setting setting) const {
    return settings[static_cast<std::size_t>(setting)];
  }
  std::optional<Printed>& operator[](Setting setting) { return settings[static_cast<std::size_t>(setting)]; }

  /// Puts `value` in the place of what the log says, and notes that `option` stated it.
  void state(Setting setting, const Printed& value, const std::string& option);
  /// The same of a name: state("gpu", &RunRecord::gpu, "H100", "--gpu H100").
  void state(std::string_view name, std::string RunRecord::*which, const std::string& value,
             const std::string& option);
  /// What stated that setting; nullptr where the log did, or nothing.
  const GivenOption* stated_for(Setting setting) const { return stated_for(to_string(setting)); }
  const GivenOption* stated_for(std::string_view name) const;
  const GivenOption* mapped_for(Field field) const;
};

}  // namespace assay::spec::audit
