#pragma once
// Where training samples come from: token files or the grammar.
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "impl/data/data_file.hpp"

namespace assay::impl::data {

/// A numbered set of samples of T + 1 token ids each: inputs are ids 0..T-1, targets ids 1..T. What a sample
/// holds is a pure function of its number. Safe to read from several threads at once.
class SampleSource {
 public:
  virtual ~SampleSource() = default;
  virtual std::int64_t samples() const = 0;
  virtual std::int64_t sequence_length() const = 0;  ///< T [tokens]

  /// Fills `ids` (T + 1 entries) with sample `sample` in [0, samples()); every id is inside the vocabulary.
  /// Errors: UserError (bad_data, io); std::out_of_range for a sample or a span that does not fit (a bug).
  virtual void read(std::int64_t sample, std::span<std::int32_t> ids) const = 0;

  /// Where the documents of sample `sample` end, by the data itself: tokens of the sample up to each end,
  /// rising, in [1, T - 1]. Nothing where the data is not read by its documents. Errors: as read.
  virtual std::optional<std::vector<std::int64_t>> document_ends(std::int64_t) const { return std::nullopt; }

  /// Of each source of a mixture, which are numbered one after the other; of one source, all of them.
  virtual std::vector<std::int64_t> samples_of_sources() const { return {samples()}; }

  /// One line for the banner and the record.
  virtual std::string description() const = 0;

  /// Bytes of text behind each token, where the data says so.
  virtual std::optional<double> bytes_per_token() const { return std::nullopt; }

  /// What it is read from, by content.
  virtual std::vector<DataFile> files() const { return {}; }

 protected:
  /// The out_of_range check of read().
  void check_request(std::int64_t sample, std::span<std::int32_t> ids) const;
};

}  // namespace assay::impl::data
