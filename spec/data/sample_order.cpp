#include "spec/data/sample_order.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cmath>
#include <limits>
#include <optional>
#include <string>

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

/// The samples in an order of their own, which begins with those that are held out.
Permutation all_samples(const SampleOrder& order) {
  // sample_order_c4
  require(order.held_out >= 0 && order.held_out < order.samples, "sample_order_c4", [&] {
    return std::to_string(order.held_out) + " of " + std::to_string(order.samples) +
           " samples are held out: at least one must be left to train on";
  });
  return Permutation(order.seed, 0, order.samples, random::Site::held_out);
}

// Samples [first, first + count) of a step; the permutation is made anew only where an epoch begins.
std::vector<std::int64_t> range(const SampleOrder& order, std::int64_t step, std::int64_t first,
                                std::int64_t count) {
  check_step(order, step);
  std::int64_t position = step * order.sequences + first;
  std::vector<std::int64_t> samples;
  samples.reserve(static_cast<std::size_t>(count));
  std::optional<Permutation> all;
  if (order.held_out != 0) all = all_samples(order);
  const std::int64_t trained = order.trained();
  for (const std::int64_t end = position + count; position < end;) {
    const std::int64_t epoch = position / trained;
    const Permutation permutation(order.seed, epoch, trained);
    for (std::int64_t at = position % trained; at < trained && position < end; ++at, ++position)
      samples.push_back(all ? (*all)(order.held_out + permutation(at)) : permutation(at));
  }
  return samples;
}

}  // namespace

std::int64_t sample(const SampleOrder& order, std::int64_t step, std::int64_t index) {
  // sample_order_c1
  require(index >= 0 && index < order.sequences, "sample_order_c1", [&] {
    return "index " + std::to_string(index) + " is not in [0, sequences=" + std::to_string(order.sequences) +
           ")";
  });
  return range(order, step, index, 1).front();
}

std::vector<std::int64_t> step_samples(const SampleOrder& order, std::int64_t step) {
  return range(order, step, 0, order.sequences);
}

std::int64_t accumulation(const SampleOrder& order, const Deal& deal) {
  // sample_order_c2 (sequences < 1 is c1's; micro * ranks may not overflow, hence the two quotients)
  require(deal.micro >= 1 && deal.ranks >= 1 && order.sequences >= 1 && order.sequences % deal.micro == 0 &&
              order.sequences / deal.micro % deal.ranks == 0,
          "sample_order_c2", [&] {
            return "sequences=" + std::to_string(order.sequences) +
                   " is not a multiple of micro=" + std::to_string(deal.micro) +
                   " * ranks=" + std::to_string(deal.ranks);
          });
  return order.sequences / deal.micro / deal.ranks;
}

std::int64_t first_index(const SampleOrder& order, const Deal& deal, std::int64_t rank,
                         std::int64_t micro_batch) {
  const std::int64_t micro_batches = accumulation(order, deal);
  // sample_order_c3
  require(rank >= 0 && rank < deal.ranks && micro_batch >= 0 && micro_batch < micro_batches,
          "sample_order_c3", [&] {
            return "rank " + std::to_string(rank) + " of " + std::to_string(deal.ranks) + ", micro-batch " +
                   std::to_string(micro_batch) + " of " + std::to_string(micro_batches);
          });
  return (micro_batch * deal.ranks + rank) * deal.micro;
}

std::vector<std::int64_t> micro_batch_samples(const SampleOrder& order, const Deal& deal, std::int64_t step,
                                              std::int64_t rank, std::int64_t micro_batch) {
  return range(order, step, first_index(order, deal, rank, micro_batch), deal.micro);
}

std::int64_t held_out_samples(double share, std::int64_t samples) {
  return std::llround(share * static_cast<double>(samples));
}

std::int64_t held_out_sample(const SampleOrder& order, std::int64_t index) {
  const Permutation all = all_samples(order);
  // sample_order_c4
  require(index >= 0 && index < order.held_out, "sample_order_c4", [&] {
    return "number " + std::to_string(index) + " of " + std::to_string(order.held_out) +
           " samples that are held out";
  });
  return all(index);
}

bool is_held_out(const SampleOrder& order, std::int64_t sample) {
  return all_samples(order).inverse(sample) < order.held_out;
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
