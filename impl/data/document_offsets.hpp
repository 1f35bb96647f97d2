#pragma once
// Offsets of the documents of a micro-batch, for attention over packed documents.
#include <cstdint>
#include <span>
#include <vector>

namespace assay::impl::data {

/// `documents`: [B*T] document numbers that never decrease within a sequence of T tokens, row by row. Returns
/// [places + 1] with places = spec::memory::document_places: the first token of each document of all
/// sequences, in order, then B*T for each unused entry, a document of no tokens. A sequence always
/// begins a document, and numbers that are left out are none. Errors: std::invalid_argument where T does not
/// divide the number of tokens (a bug).
std::vector<std::int32_t> document_offsets(std::span<const std::int32_t> documents, std::int64_t T);

/// Pairs of tokens that see each other: the sum of n*(n + 1)/2 over documents of n tokens each.
std::int64_t visible_pairs(std::span<const std::int32_t> offsets);

}  // namespace assay::impl::data
