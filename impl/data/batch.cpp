#include "impl/data/batch.hpp"

#include <algorithm>

#include "impl/data/document_offsets.hpp"

namespace assay::impl::data {
namespace {

/// Tokens up to each end token of a sequence.
std::vector<std::int64_t> ends_at(std::int64_t end_of_document, std::span<const std::int64_t> inputs) {
  std::vector<std::int64_t> ends;
  for (std::size_t t = 0; t < inputs.size(); ++t)
    if (inputs[t] == end_of_document) ends.push_back(static_cast<std::int64_t>(t) + 1);
  return ends;
}

/// Of a sequence of T tokens. `ends` rise.
void number_documents(const std::vector<std::int64_t>& ends, std::int64_t T, MicroBatch& batch) {
  std::int32_t document = 0, position = 0;
  auto end = ends.begin();
  for (std::int64_t t = 0; t < T; ++t) {
    if (end != ends.end() && *end == t) {
      ++end;
      ++document;
      position = 0;
    }
    batch.documents.push_back(document);
    batch.positions.push_back(position++);
  }
}

}  // namespace

void add_valid_of_sources(const MicroBatch& batch, std::span<std::int64_t> counts) {
  for (std::size_t b = 0; b < batch.sources.size(); ++b) {
    const auto targets = batch.targets.begin() + static_cast<std::int64_t>(b) * batch.T;
    counts[static_cast<std::size_t>(batch.sources[b])] +=
        batch.T - std::count(targets, targets + batch.T, ignore_index);
  }
}

MicroBatch read_micro_batch(const SampleSource& source, std::span<const std::int64_t> samples,
                            std::optional<std::int64_t> end_of_document) {
  MicroBatch batch;
  batch.B = static_cast<std::int64_t>(samples.size());
  batch.T = source.sequence_length();
  batch.sample_ids.assign(samples.begin(), samples.end());
  const auto T = static_cast<std::size_t>(batch.T);
  batch.inputs.reserve(samples.size() * T);
  batch.targets.reserve(samples.size() * T);
  std::vector<std::int32_t> ids(T + 1);
  for (const std::int64_t sample : samples) {
    source.read(sample, ids);
    batch.inputs.insert(batch.inputs.end(), ids.begin(), ids.end() - 1);
    batch.targets.insert(batch.targets.end(), ids.begin() + 1, ids.end());
    auto ends = source.document_ends(sample);
    if (!ends && end_of_document) ends = ends_at(*end_of_document, std::span(batch.inputs).last(T));
    if (ends) number_documents(*ends, batch.T, batch);
  }
  if (!batch.documents.empty()) batch.document_offsets = document_offsets(batch.documents, batch.T);
  batch.valid_tokens = static_cast<std::int64_t>(batch.targets.size()) -
                       std::count(batch.targets.begin(), batch.targets.end(), ignore_index);
  return batch;
}

}  // namespace assay::impl::data
