#include "spec/data/sample_order.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "spec/count.hpp"
#include "spec/data/permutation.hpp"
#include "spec/error.hpp"

namespace assay::spec::data {
namespace {

void check_step(const SampleOrder& order, std::int64_t step) {
  // sample_order_c1
  require(order.samples >= 1 && order.sequences >= 1 && step >= 0 &&
              step < std::numeric_limits<std::int64_t>::max() / order.sequences,
          "sample_order_c1", [&] {
            return "samples=" + std::to_string(order.samples) +
                   ", sequences=" + std::to_string(order.sequences) + ", step=" + std::to_string(step);
          });
}

/// The samples of one source: numbers from `first` on, ordered by a seed of their own.
struct Source {
  std::uint64_t seed;
  std::int64_t first;
  SampleCounts counts;
};

std::vector<Source> sources_of(const SampleOrder& order) {
  std::vector<Source> sources;
  if (!order.mixture) return {{order.seed, 0, {order.samples, order.held_out}}};
  std::int64_t first = 0;
  for (const SampleCounts& counts : order.of_sources) {
    sources.push_back({order.seed + sources.size(), first, counts});
    first += counts.samples;
  }
  return sources;
}

/// The samples in an order of their own, which begins with those that are held out.
Permutation all_samples(const Source& source) {
  const SampleCounts& counts = source.counts;
  // sample_order_c4
  require(counts.held_out >= 0 && counts.held_out < counts.samples, "sample_order_c4", [&] {
    return std::to_string(counts.held_out) + " of " + std::to_string(counts.samples) +
           " samples are held out: at least one must be left to train on";
  });
  return Permutation(source.seed, 0, counts.samples, random::Site::held_out);
}

/// A source's endless order. The permutation is made anew only where an epoch begins.
class EndlessOrder {
 public:
  explicit EndlessOrder(const Source& source) : source_(source) {
    if (source.counts.held_out != 0) all_ = all_samples(source);
  }
  std::int64_t sample(std::int64_t index) {
    const std::int64_t trained = source_.counts.trained(), epoch = index / trained;
    if (!permutation_ || epoch != epoch_) permutation_.emplace(source_.seed, epoch_ = epoch, trained);
    const std::int64_t number = (*permutation_)(index % trained);
    return source_.first + (all_ ? (*all_)(source_.counts.held_out + number) : number);
  }

 private:
  Source source_;
  std::optional<Permutation> all_, permutation_;
  std::int64_t epoch_ = 0;
};

// Samples [first, first + count) of a step.
std::vector<std::int64_t> range(const SampleOrder& order, std::int64_t step, std::int64_t first,
                                std::int64_t count) {
  check_step(order, step);
  std::vector<EndlessOrder> sources;
  for (const Source& source : sources_of(order)) sources.emplace_back(source);
  const std::int64_t begin = sequences_before(order.batch(), step) + first;
  std::vector<std::int64_t> samples;
  samples.reserve(static_cast<std::size_t>(count));
  for (std::int64_t position = begin; position < begin + count; ++position) {
    const Mixture::Place place = order.mixture ? order.mixture->at(position) : Mixture::Place{0, position};
    samples.push_back(sources[place.source].sample(place.index));
  }
  return samples;
}

}  // namespace

SampleOrder order_of_sources(std::uint64_t seed, const GlobalBatch& batch, double share,
                             const std::vector<std::int64_t>& samples_of_sources,
                             std::shared_ptr<const Mixture> mixture) {
  // sample_order_c5
  require(samples_of_sources.size() == (mixture ? mixture->sources() : 1), "sample_order_c5", [&] {
    return std::to_string(samples_of_sources.size()) + " sources, and a mixture of " +
           std::to_string(mixture ? mixture->sources() : 1);
  });
  SampleOrder order{.seed = seed, .sequences = batch.sequences, .ramp = batch.ramp};
  for (const std::int64_t samples : samples_of_sources) {
    const SampleCounts counts{samples, held_out_samples(share, samples)};
    order.samples += counts.samples;
    order.held_out += counts.held_out;
    if (mixture) order.of_sources.push_back(counts);
  }
  order.mixture = std::move(mixture);
  return order;
}

std::size_t source_of(const SampleOrder& order, std::int64_t sample) {
  std::size_t source = 0;
  for (; source + 1 < order.of_sources.size() && sample >= order.of_sources[source].samples; ++source)
    sample -= order.of_sources[source].samples;
  return source;
}

std::vector<std::int64_t> read_before(const SampleOrder& order, std::int64_t step) {
  check_step(order, step);
  const std::int64_t position = sequences_before(order.batch(), step);
  if (!order.mixture) return {position};
  std::vector<std::int64_t> counts;
  for (std::size_t k = 0; k < order.of_sources.size(); ++k)
    counts.push_back(order.mixture->count(k, position));
  return counts;
}

std::int64_t sample(const SampleOrder& order, std::int64_t step, std::int64_t index) {
  // sample_order_c1
  require(index >= 0 && index < sequences_of(order.batch(), step), "sample_order_c1", [&] {
    return "index " + std::to_string(index) +
           " is not in [0, sequences=" + std::to_string(sequences_of(order.batch(), step)) + ")";
  });
  return range(order, step, index, 1).front();
}

std::vector<std::int64_t> step_samples(const SampleOrder& order, std::int64_t step) {
  return range(order, step, 0, sequences_of(order.batch(), step));
}

std::int64_t accumulation(const SampleOrder& order, const BatchSplit& split, std::int64_t step) {
  const std::int64_t sequences = sequences_of(order.batch(), step);
  // sample_order_c2 (sequences < 1 is c1's; micro * ranks may not overflow, hence the two quotients)
  require(split.micro >= 1 && split.ranks >= 1 && sequences >= 1 && sequences % split.micro == 0 &&
              sequences / split.micro % split.ranks == 0,
          "sample_order_c2", [&] {
            return "sequences=" + std::to_string(sequences) +
                   " is not a multiple of micro=" + std::to_string(split.micro) +
                   " * ranks=" + std::to_string(split.ranks);
          });
  return sequences / split.micro / split.ranks;
}

std::int64_t first_index(const SampleOrder& order, const BatchSplit& split, std::int64_t rank,
                         std::int64_t micro_batch, std::int64_t step) {
  const std::int64_t micro_batches = accumulation(order, split, step);
  // sample_order_c3
  require(rank >= 0 && rank < split.ranks && micro_batch >= 0 && micro_batch < micro_batches,
          "sample_order_c3", [&] {
            return "rank " + std::to_string(rank) + " of " + std::to_string(split.ranks) + ", micro-batch " +
                   std::to_string(micro_batch) + " of " + std::to_string(micro_batches);
          });
  return (micro_batch * split.ranks + rank) * split.micro;
}

std::vector<std::int64_t> micro_batch_samples(const SampleOrder& order, const BatchSplit& split,
                                              std::int64_t step, std::int64_t rank,
                                              std::int64_t micro_batch) {
  return range(order, step, first_index(order, split, rank, micro_batch, step), split.micro);
}

std::int64_t held_out_samples(double share, std::int64_t samples) {
  return std::llround(share * static_cast<double>(samples));
}

std::int64_t held_out_sample(const SampleOrder& order, std::int64_t index) {
  // sample_order_c4
  require(index >= 0 && index < order.held_out, "sample_order_c4", [&] {
    return "number " + std::to_string(index) + " of " + std::to_string(order.held_out) +
           " samples that are held out";
  });
  const std::vector<Source> sources = sources_of(order);
  auto source = sources.begin();
  for (; index >= source->counts.held_out; ++source) index -= source->counts.held_out;
  return source->first + all_samples(*source)(index);
}

bool is_held_out(const SampleOrder& order, std::int64_t sample) {
  const Source source = sources_of(order)[source_of(order, sample)];
  return all_samples(source).inverse(sample - source.first) < source.counts.held_out;
}

std::uint64_t sample_hash(std::span<const std::int64_t> samples) {
  std::string bytes;
  bytes.reserve(samples.size() * 8);
  for (const std::int64_t id : samples)
    for (int shift = 0; shift < 64; shift += 8)
      bytes.push_back(static_cast<char>(static_cast<std::uint64_t>(id) >> shift & 0xFF));
  return XXH3_64bits(bytes.data(), bytes.size());
}

bool all_the_same(std::int64_t sum, std::int64_t squares, std::int64_t ranks) {
  return Count(ranks) * squares == Count(sum) * sum;
}

}  // namespace assay::spec::data
