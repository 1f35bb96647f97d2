#include "impl/data/validation_set.hpp"

#include <algorithm>
#include <filesystem>
#include <utility>
#include <vector>

#include "impl/data/open_source.hpp"
#include "impl/data/token_data.hpp"
#include "spec/error.hpp"
#include "spec/text/quantity.hpp"
#include "spec/text/value.hpp"

namespace assay::impl::data {

ValidationSet::ValidationSet(const spec::RunConfig& config, const spec::ModelSpec& model,
                             std::shared_ptr<const SampleSource> training, std::int64_t tokens)
    : source_(std::move(training)), evaluated_{.set = 0, .most = config.eval_sequences} {
  if (config.end_of_document >= 0) end_of_document_ = config.end_of_document;
  if (!config.eval_paths.empty()) {
    const std::vector<std::filesystem::path> paths(config.eval_paths.begin(), config.eval_paths.end());
    source_ = std::make_shared<TokenData>(paths, stated_type(config), model.vocab, config.sequence_length,
                                          std::vector<std::int64_t>{}, config.document_ends);
    evaluated_.set = source_->samples();
  } else {
    hold_out(config);
  }
  batch_ = spec::data::validation_batch(config.sequence_length, evaluated_.count(), spec::token_unit(config),
                                        tokens);
}

void ValidationSet::hold_out(const spec::RunConfig& config) {
  const spec::data::SampleOrder order =
      spec::data::order_of_sources(config.seed, {.sequences = 1}, config.eval_share,
                                   source_->samples_of_sources(), spec::mixture_of(config));
  const std::int64_t samples = order.samples, held_out = order.held_out;
  if (held_out == 0 || held_out >= samples)
    throw UserError(ExitCode::usage,
                    "eval.share = " + spec::shown(config.eval_share) + " of the data's " +
                        spec::grouped(samples) + " samples holds out " +
                        (held_out == 0 ? "none: raise it to " : "all: lower it to ") +
                        (held_out == 0 ? "at least" : "less than") + " " +
                        spec::shown((held_out == 0 ? 1.0 : samples - 0.5) / static_cast<double>(samples)) +
                        ", or name files in eval.paths");
  held_out_ = order;
  evaluated_.set = held_out;
}

std::vector<DataFile> ValidationSet::files() const {
  return held_out_ ? std::vector<DataFile>() : source_->files();
}

std::string ValidationSet::description() const {
  return spec::grouped(sequences()) + " of " + spec::grouped(evaluated_.set) +
         (held_out_ ? " held-out samples of " : " samples of ") + std::to_string(sequence_length()) +
         (held_out_ ? "" : ", " + source_->description());
}

std::int64_t ValidationSet::sample(std::int64_t index) const {
  const std::int64_t place = evaluated_.place(index);
  return held_out_ ? spec::data::held_out_sample(*held_out_, place) : place;
}

MicroBatch ValidationSet::read(std::int64_t first) const {
  std::vector<std::int64_t> samples;
  const std::int64_t real = std::clamp<std::int64_t>(sequences() - first, 0, batch_);
  for (std::int64_t i = 0; i < batch_; ++i) samples.push_back(sample(i < real ? first + i : 0));
  MicroBatch batch = read_micro_batch(*source_, samples, end_of_document_);
  const auto filled = batch.targets.begin() + real * batch.T;
  std::fill(filled, batch.targets.end(), ignore_index);
  batch.valid_tokens =
      filled - batch.targets.begin() - std::count(batch.targets.begin(), filled, ignore_index);
  return batch;
}

ValidationSet::Scan ValidationSet::scan(std::int64_t rank, std::int64_t ranks) const {
  std::uint64_t hash = 0;
  Scan scan;
  for (std::int64_t first = rank * batch_; first < sequences(); first += ranks * batch_) {
    const MicroBatch batch = read(first);
    scan.valid_tokens += batch.valid_tokens;
    for (std::int64_t i = 0; i < std::min(batch_, sequences() - first); ++i) {
      std::vector<std::int64_t> hashed{first + i};  // the same sequences in another order are another set
      for (const auto* list : {&batch.inputs, &batch.targets})
        hashed.insert(hashed.end(), list->begin() + i * batch.T, list->begin() + (i + 1) * batch.T);
      hash += spec::data::sample_hash(hashed);
    }
  }
  scan.hash = static_cast<std::int64_t>(hash);
  return scan;
}

}  // namespace assay::impl::data
