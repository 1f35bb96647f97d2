#pragma once
// Equations between printed numbers that are products: each is a ratio printed / recomputed that must be 1.
// A reading of the log (spec/audit/hypotheses.hpp) says by which factor a ratio departs from 1.
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "spec/audit/evidence.hpp"

namespace assay::spec::audit {

enum class Relation {
  ranks,                ///< GPUs = product of the parallel axes
  sequences,            ///< sequences = micro x accumulation x data-parallel ranks
  tokens_per_step,      ///< tokens per step = sequences x T
  step_tokens,          ///< tokens of each step = tokens per step
  step_sequences,       ///< sequences of each step, as its line says = sequences per step
  rate_time,            ///< tokens/s x seconds = tokens
  sequences_rate,       ///< sequences/s x seconds = sequences of the step
  gpu_rate,             ///< tokens/s of one GPU x GPUs = tokens/s of all
  flops_rate,           ///< achieved FLOP/s = FLOPs/token x tokens/s
  mfu,                  ///< MFU = FLOPs/token x tokens/s / peak
  mfu_of_flops_rate,    ///< MFU = achieved FLOP/s / peak
  flops_rate_of_batch,  ///< achieved FLOP/s = FLOPs/token x tokens per step / seconds, where no tokens/s is
                        ///< printed
  mfu_of_batch,         ///< MFU = FLOPs/token x tokens per step / seconds / peak, where no rate is printed
  peak,                 ///< peak = dense peak of the GPU x GPUs
  flops_per_token,      ///< FLOPs per token as the stated or the headline convention counts
  parameters,           ///< parameters as the model has
  parameters_nonembedding,
  ffn_flops_per_layer,  ///< forward FLOPs of a layer's MLP over a sequence as the model's inner width makes
                        ///< them
  device_memory,        ///< memory of the GPU as its data sheet says
  tokens_total,         ///< tokens since the start grow by tokens per step
  sequences_total,      ///< sequences since the start grow by sequences per step
  wall_clock,           ///< step times add up to the clock
  rate_wall_clock,      ///< tokens/s and the clock agree where no step time is printed
  expected_rate,        ///< tokens/s at 50 % MFU = half the peak / FLOPs per token
  summary_tokens,  ///< total tokens of a summary = steps x tokens per step, where they are: evidence alone
  count_
};

constexpr std::size_t relation_count = static_cast<std::size_t>(Relation::count_);
std::string_view to_string(Relation relation);  ///< "rate_time"

/// One place where the relation was examined.
struct Sample {
  Interval ratio;             ///< printed / recomputed, all that roundings leave open
  double printed = 0;         ///< in the relation's unit
  Interval recomputed{0, 0};  ///< of the default reading
  std::int64_t line = 0;
  std::int64_t step = -1;  ///< index in Evidence::steps; -1: of the settings
  double likely = 0;       ///< the ratio of the numbers as they are printed; 0: the middle
  bool holds(double factor) const {
    return ratio.low <= factor * (1 + 1e-9) && factor * (1 - 1e-9) <= ratio.high;
  }
};

/// One way of counting the FLOPs of a token, where the log does not say which: what it counts of what the
/// samples rest on.
struct FlopCounting {
  std::string convention;
  Interval scale{1, 1};
};

/// What a clock shows more than the steps of a log's lines.
struct Missed {
  bool share = false;  ///< the same share of every window: numbers that are a multiple
  bool pause = false;  ///< the same time in every window
};

struct Comparison {
  std::vector<Sample> samples;
  std::vector<FlopCounting>
      ways;               ///< empty: the one of the samples. One of them is the trainer's, on every line
  bool of_ranks = false;  ///< the ways are numbers of ranks, which the log does not say, not conventions
  std::string missing;    ///< the input that keeps it from being judged, when there are no samples
  /// Of a clock beside numbers that leave out no time: the clock's over the steps', at least, in every
  /// stretch.
  double clock_over_steps = 0;
  std::string_view left_out{};  ///< what the trainer's source leaves out of the steps' times all the same, as
                                ///< the note says it
  /// Of step times beside a clock: printed / recomputed where no pause is in what the clock shows.
  Interval without_pauses{1, 1};
  bool paused = false;      ///< a clock shows more than the steps, but as much as they in some windows
  std::string_view mean{};  ///< how the number is formed, where its lines alone tell that it is a mean
  Missed missed{};          ///< of a clock that shows more everywhere
};

using Comparisons = std::array<Comparison, relation_count>;

/// Whether the sample holds, counted in way `way` (any number where there is but one).
inline bool holds(const Comparison& comparison, const Sample& sample, double factor, std::size_t way) {
  if (comparison.ways.empty()) return sample.holds(factor);
  const Interval& scale = comparison.ways[way].scale;
  return sample.ratio.low <= factor * scale.high * (1 + 1e-9) &&
         factor * scale.low * (1 - 1e-9) <= sample.ratio.high;
}

/// The way under which most samples hold; of equals the first.
std::size_t best_way(const Comparison& comparison, double factor);

/// From the least to the most that its ways count; 1 where there is but one.
Interval all_ways(const Comparison& comparison);

/// A factor that most ratios share, and how many do.
struct Shared {
  std::size_t ratios = 0;
  Interval factor{1, 1};
};

Shared shared_factor(const std::vector<Interval>& ratios);

/// Every relation at every step, under the default reading: rates over all GPUs, peak of all GPUs.
Comparisons compare(const Evidence& evidence);

// Its parts: what batch, model and clock say, rates and utilisation.
void compare_batches(const Evidence& evidence, Comparisons& out);  // relations_batch.cpp
void compare_rates(const Evidence& evidence, Comparisons& out);    // relations_rates.cpp
void compare_model(const Evidence& evidence, Comparisons& out);    // relations_model.cpp
void compare_clock(const Evidence& evidence, Comparisons& out);    // relations_clock.cpp
void compare_summary(const Evidence& evidence, Comparisons& out);  // summaries.cpp

/// The parameters of `model` as the log's trainer prints them: llm.c rounds its vocabulary up to a multiple
/// of 128 (train_gpt2.cu), nanoGPT leaves the positions out (model.py, get_num_params).
double count_of_shape(const Evidence& evidence, const ModelSpec& model);

/// Entries of the matrices of one dense MLP.
double ffn_entries(const ModelSpec& model);

/// What a count of parameters may leave out; empty where the model learns no positions.
std::string note_on_parameters(const Evidence& evidence);

/// Adds a sample unless one side is not positive: a ratio would say nothing.
/// `likely`: what the numbers as they are printed make; 0 where that is not known.
void add_sample(Comparison& to, const Printed& printed, Interval recomputed, std::int64_t step = -1,
                double likely = 0);

/// A reading's effect: the factor of each relation's printed / recomputed ratio; 1 where it has none.
struct Factors {
  std::array<double, relation_count> values;
  Factors() { values.fill(1); }
  double& operator[](Relation relation) { return values[static_cast<std::size_t>(relation)]; }
  double operator[](Relation relation) const { return values[static_cast<std::size_t>(relation)]; }
};

inline const Comparison& at(const Comparisons& comparisons, Relation relation) {
  return comparisons[static_cast<std::size_t>(relation)];
}

inline Comparison& at(Comparisons& comparisons, Relation relation) {
  return comparisons[static_cast<std::size_t>(relation)];
}

}  // namespace assay::spec::audit
