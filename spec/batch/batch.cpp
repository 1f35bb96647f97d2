#include "spec/batch/batch.hpp"

#include <string>

#include "spec/batch/nearest_batch.hpp"
#include "spec/error.hpp"

namespace assay::spec {

namespace {

[[noreturn]] void refuse(std::int64_t sequences, std::int64_t micro, std::int64_t ranks) {
  const std::int64_t sequences_at_once = micro * ranks;
  const std::string reason = "batch.sequences = " + std::to_string(sequences) +
                             " is not a multiple of batch.micro = " + std::to_string(micro) + " times " +
                             std::to_string(ranks) + " data-parallel rank" + (ranks == 1 ? "" : "s") + " = " +
                             std::to_string(sequences_at_once);
  throw BatchError(reason, "set batch.sequences to " + nearest_multiples(sequences, sequences_at_once) +
                               (sequences % ranks == 0
                                    ? ", or batch.micro to " + nearest_divisors(sequences / ranks, micro)
                                    : " (no batch.micro fits: " + std::to_string(sequences) +
                                          " is not a multiple of " + std::to_string(ranks) + " ranks)"));
}

}  // namespace

Batch batch_of(std::int64_t sequences, std::int64_t micro, std::int64_t ranks) {
  constexpr std::int64_t limit = std::int64_t{1}
                                 << 31;  // keeps micro * ranks and the search for divisors small
  // batch_c1
  require(sequences >= 1 && sequences < limit && micro >= 0 && micro < limit && ranks >= 1 && ranks < limit,
          "batch_c1", [&] {
            return "sequences=" + std::to_string(sequences) + ", micro=" + std::to_string(micro) +
                   ", ranks=" + std::to_string(ranks);
          });
  if (micro == 0 && sequences % ranks != 0)
    throw BatchError("batch.sequences = " + std::to_string(sequences) + " is not a multiple of " +
                         std::to_string(ranks) + " data-parallel ranks",
                     "set batch.sequences to " + nearest_multiples(sequences, ranks));
  if (micro == 0) micro = sequences / ranks;
  if (sequences % (micro * ranks) != 0) refuse(sequences, micro, ranks);
  return {
      .sequences = sequences, .micro = micro, .ranks = ranks, .accumulation = sequences / (micro * ranks)};
}

}  // namespace assay::spec
