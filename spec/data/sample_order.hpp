#pragma once
// Which samples an optimizer step reads, and which rank and micro-batch reads them: pure functions of the
// step. Definitions and a worked example: spec/data/sample_order.md.
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "spec/batch/ramp.hpp"
#include "spec/data/mixture.hpp"

namespace assay::spec::data {

/// A source's samples.
struct SampleCounts {
  std::int64_t samples = 0;
  std::int64_t held_out = 0;  ///< of them, read by no step

  std::int64_t trained() const { return samples - held_out; }  ///< samples of an epoch
};

/// The endless order of samples of a run. Ranks and micro-batches are no part of it.
struct SampleOrder {
  std::uint64_t seed = 0;
  std::int64_t samples = 0;    ///< of the data set
  std::int64_t sequences = 0;  ///< samples of one optimizer step, over all ranks, behind `ramp`
  std::int64_t held_out = 0;   ///< samples that no step reads (held_out_sample)
  /// Of a data set of several sources: how they are mixed, and what each holds; their sums are `samples` and
  /// `held_out`. Samples are numbered source after source. Without it, one source.
  std::shared_ptr<const Mixture> mixture = {};
  std::vector<SampleCounts> of_sources = {};
  std::vector<RampStage> ramp = {};  ///< steps with fewer samples before

  GlobalBatch batch() const { return {sequences, ramp}; }
  std::int64_t trained() const { return samples - held_out; }  ///< samples of an epoch of one source
};

/// The order of a data set of those sources, each of which holds out `share` of its samples; `mixture` null
/// for one source. Errors: SpecError sample_order_c5 (the mixture is of another number of sources).
SampleOrder order_of_sources(std::uint64_t seed, const GlobalBatch& batch, double share,
                             const std::vector<std::int64_t>& samples_of_sources,
                             std::shared_ptr<const Mixture> mixture);

/// The source that sample `sample` is of.
std::size_t source_of(const SampleOrder& order, std::int64_t sample);

/// How many of each source's samples the steps before `step` have read, counted as often as they were.
std::vector<std::int64_t> read_before(const SampleOrder& order, std::int64_t step);

/// How the samples of a step are split; accumulation = sequences / (micro * ranks).
struct BatchSplit {
  std::int64_t micro = 0;  ///< samples per rank and micro-batch
  std::int64_t ranks = 1;  ///< data-parallel ranks
};

/// Sample `index` of step `step`. With n samples an epoch that are not held out, position g = (samples
/// of the steps before) + index of the endless order is number Permutation(seed, g / n, n)(g % n) of the
/// samples that are trained: each epoch reads every one of them once, in an order of its own, and a step goes
/// on into the next epoch where one ends. Of a mixture, g is a place of the mixture, and this holds of each
/// source. Errors: SpecError sample_order_c1 (samples < 1, sequences < 1, step < 0, index not in [0,
/// sequences), g >= 2^63), sample_order_c4 (held_out not in [0, samples)).
std::int64_t sample(const SampleOrder& order, std::int64_t step, std::int64_t index);

/// All samples of a step in global order.
std::vector<std::int64_t> step_samples(const SampleOrder& order, std::int64_t step);

/// Micro-batches of step `step`, per rank.
/// Errors: SpecError sample_order_c2 (micro < 1, ranks < 1, or sequences not a multiple of micro * ranks).
std::int64_t accumulation(const SampleOrder& order, const BatchSplit& split, std::int64_t step = 0);

/// Global index of the first sample of a micro-batch, which has `micro` samples in a row:
/// (micro_batch * ranks + rank) * micro.
/// Errors: SpecError sample_order_c2, sample_order_c3 (rank not in [0, ranks), micro_batch not in [0,
/// accumulation)).
std::int64_t first_index(const SampleOrder& order, const BatchSplit& split, std::int64_t rank,
                         std::int64_t micro_batch, std::int64_t step = 0);

/// The samples of one micro-batch of one rank.
std::vector<std::int64_t> micro_batch_samples(const SampleOrder& order, const BatchSplit& split,
                                              std::int64_t step, std::int64_t rank, std::int64_t micro_batch);

/// How many of `samples` a share of them is: the nearest whole number.
std::int64_t held_out_samples(double share, std::int64_t samples);

/// Number `index`, in [0, held_out), of the samples that are held out. Which samples these are depends on
/// seed, samples and held_out alone, and more of them include the fewer. Errors: SpecError sample_order_c4.
std::int64_t held_out_sample(const SampleOrder& order, std::int64_t index);

/// Whether no step reads `sample`. Errors: SpecError sample_order_c4.
bool is_held_out(const SampleOrder& order, std::int64_t sample);

/// XXH3-64 (seed 0) of the ids as little-endian 64-bit integers, one after the other. Of step_samples in the
/// record: two runs that read the same samples in the same order have the same hash.
std::uint64_t sample_hash(std::span<const std::int64_t> samples);

/// The part of a hash that ranks sum up: of 2^23 ranks the sum of its squares fits in 63 bits.
constexpr std::int64_t cut_hash(std::uint64_t hash) { return static_cast<std::int64_t>(hash & 0xfffff); }
/// Whether `ranks` cut hashes are all the same, by their sum and the sum of their squares: ranks * squares =
/// sum^2 there alone (Cauchy and Schwarz).
bool all_the_same(std::int64_t sum, std::int64_t squares, std::int64_t ranks);

}  // namespace assay::spec::data
