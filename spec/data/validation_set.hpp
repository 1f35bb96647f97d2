#pragma once
// Which sequences a run is validated on, and in which forward passes: pure functions, of which ranks and
// micro-batches are no part. Reasons and a worked example: spec/data/validation_set.md.
#include <cstdint>
#include <span>

namespace assay::spec::data {

/// Tokens of one forward pass of a validation, where sequences are shorter.
inline constexpr std::int64_t validation_tokens = 4096;

/// Sequences of one forward pass: as many of `sequence_length` tokens as `tokens` hold, at least one, no more
/// than `most` (0: any number), then the next number whose tokens `unit` divides. Errors: SpecError
/// validation_set_c1 (sequence_length < 1, most < 0 or unit < 1).
std::int64_t validation_batch(std::int64_t sequence_length, std::int64_t most, std::int64_t unit,
                              std::int64_t tokens = validation_tokens);

/// The sequences that are evaluated, `most` at most (0: all), evenly spread over a set of `set`.
struct Evaluated {
  std::int64_t set = 0, most = 0;

  /// How many.
  std::int64_t count() const { return most == 0 || most > set ? set : most; }
  /// Place in the set of number `index`: floor(index * set / count). Errors: SpecError validation_set_c2
  /// (set < 1, most not in [0, 2^31), index not in [0, count)).
  std::int64_t place(std::int64_t index) const;
};

/// Forward passes of `sequences` sequences, `batch` in each. The last may be filled up, and so may the last
/// round, in which every rank runs one: what fills up has no valid target.
struct ValidationRounds {
  std::int64_t sequences = 0, batch = 0, ranks = 1;

  std::int64_t count() const { return (sequences + batch * ranks - 1) / (batch * ranks); }
  /// Number of the first sequence of a rank's forward pass.
  std::int64_t first(std::int64_t round, std::int64_t rank) const { return (round * ranks + rank) * batch; }
};

/// The sum of the losses of sequences in their order, one after the other.
double sum_in_order(std::span<const double> losses);

}  // namespace assay::spec::data
