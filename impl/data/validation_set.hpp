#pragma once
// The sequences that a run is validated on. [spec/data/validation_set.md]
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "impl/data/batch.hpp"
#include "spec/config/run_config.hpp"
#include "spec/data/sample_order.hpp"
#include "spec/data/validation_set.hpp"
#include "spec/model/model_spec.hpp"

namespace assay::impl::data {

class ValidationSet {
 public:
  /// The files of eval.paths, or what eval.share holds out of `training`. `tokens`: of one forward pass
  /// (spec::data::validation_batch). Domain: validates(config). Errors: those of TokenData; UserError(usage)
  /// where the share holds out no sample, or all.
  ValidationSet(const spec::RunConfig& config, const spec::ModelSpec& model,
                std::shared_ptr<const SampleSource> training,
                std::int64_t tokens = spec::data::validation_tokens);

  std::int64_t sequences() const { return evaluated_.count(); }  ///< that are evaluated
  std::int64_t batch() const { return batch_; }                  ///< sequences of one forward pass
  std::int64_t sequence_length() const { return source_->sequence_length(); }
  std::optional<double> bytes_per_token() const { return source_->bytes_per_token(); }

  /// Those of eval.paths; none where the samples are held out of the training data.
  std::vector<DataFile> files() const;

  /// "256 of 10,486 held-out samples of 128".
  std::string description() const;

  /// Number `index`, in [0, sequences()), of the evaluated samples, by its number in the source.
  std::int64_t sample(std::int64_t index) const;
  /// `batch` sequences from number `first` on. What is beyond the last is filled up: its targets are ignored.
  /// Errors: those of SampleSource::read.
  MicroBatch read(std::int64_t first) const;

  /// What the token ids of some of the sequences come to. Of several parts, each is the sum; the sum of
  /// hashes wraps.
  struct Scan {
    std::int64_t hash = 0, valid_tokens = 0;
  };
  /// Reads each sequence of this data-parallel rank once. Errors: those of read.
  Scan scan(std::int64_t rank, std::int64_t ranks) const;

 private:
  void hold_out(const spec::RunConfig& config);  ///< of source_, which is the training data

  std::shared_ptr<const SampleSource> source_;
  std::optional<spec::data::SampleOrder> held_out_;  ///< of: the samples are what it holds out
  spec::data::Evaluated evaluated_;
  std::int64_t batch_ = 0;
  std::optional<std::int64_t> end_of_document_;
};

}  // namespace assay::impl::data
