#pragma once
// The token ids of one micro-batch.
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "impl/data/sample_source.hpp"

namespace assay::impl::data {

/// A target with this id is not predicted and does not count as valid.
inline constexpr std::int64_t ignore_index = -100;

/// B sequences of T tokens, row by row: entry (b, t) is at b*T + t.
struct MicroBatch {
  std::int64_t B = 0, T = 0;
  std::vector<std::int64_t> inputs;   ///< [B*T] ids 0..T-1 of each sample
  std::vector<std::int64_t> targets;  ///< [B*T] ids 1..T of each sample, or ignore_index
  std::vector<std::int32_t>
      documents;  ///< [B*T] number of the token's document in its sequence; empty: one each
  std::vector<std::int32_t>
      positions;  ///< [B*T] position of the token in its document; empty with `documents`
  std::vector<std::int32_t> document_offsets;  ///< impl/data/document_offsets.hpp; empty with `documents`
  std::int64_t valid_tokens = 0;               ///< targets that are not ignore_index
  std::vector<std::int64_t> sample_ids;        ///< [B]
  std::vector<std::int64_t> sources = {};      ///< [B] of a mixture, the source of each sequence; else empty
};

/// Adds the valid targets of each source's sequences to `counts`, one a source; nothing without sources.
void add_valid_of_sources(const MicroBatch& batch, std::span<std::int64_t> counts);

/// Reads `samples` into one micro-batch.
/// A document ends where the source says so (SampleSource::document_ends), or where it says nothing, at the
/// id `end_of_document`; without either a sequence is one document. The token after it begins the next one,
/// at position 0; two in a row make a document of that one token. Every sequence begins with document 0 at
/// position 0, also where a sample begins inside a document. The last token of a document predicts the first
/// of the next: each target is predicted once. Errors: those of SampleSource::read.
MicroBatch read_micro_batch(const SampleSource& source, std::span<const std::int64_t> samples,
                            std::optional<std::int64_t> end_of_document);

}  // namespace assay::impl::data
