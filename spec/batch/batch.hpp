#pragma once
// The batch of one optimizer step, stated once, globally. Rules and example: spec/batch/batch.md.
#include <cstdint>
#include <string>
#include <utility>

#include "spec/count.hpp"
#include "spec/error.hpp"

namespace assay::spec {

/// sequences = micro * ranks * accumulation, exactly.
struct Batch {
  std::int64_t sequences = 0;     ///< per optimizer step, over all ranks
  std::int64_t micro = 0;         ///< of one micro-batch, per rank
  std::int64_t ranks = 0;         ///< data-parallel ranks
  std::int64_t accumulation = 0;  ///< micro-batches of a rank per optimizer step

  std::int64_t sequences_per_rank() const { return micro * accumulation; }
  /// Tokens of one optimizer step over all ranks. [tokens]
  Count tokens_per_step(std::int64_t sequence_length) const { return Count(sequences) * sequence_length; }
  bool operator==(const Batch&) const = default;
};

/// Sequences that ranks and micro-batches do not divide. `reason`: the message without the nearest that they
/// do.
struct BatchError : UserError {
  BatchError(std::string reason_, const std::string& advice)
      : UserError(ExitCode::usage, reason_ + ": " + advice), reason(std::move(reason_)) {}
  std::string reason;
};

/// The batch of `sequences` in micro-batches of `micro` on `ranks` data-parallel ranks. micro = 0 stands for
/// sequences / ranks, one micro-batch. Errors: SpecError batch_c1 (an argument out of range);
/// BatchError when micro * ranks does not divide sequences: the message names the nearest values of
/// sequences, and of micro, that do.
Batch batch_of(std::int64_t sequences, std::int64_t micro, std::int64_t ranks);

}  // namespace assay::spec
