#pragma once
// Offsets of the documents of a micro-batch, for attention over packed documents.
#include <cstdint>
#include <span>
#include <vector>

namespace assay::impl::data {

/// `documents`: [B*T] document numbers that never decrease within a sequence of T tokens, row by row. Returns
/// [slots + 1] with slots = spec::memory::document_slots: the first token of each document of all
/// sequences, in order, then B*T for each slot that is left, a document of no tokens. A sequence always
/// begins a document, and numbers that are left out are none. Errors: std::invalid_argument where T does not
/// divide the number of tokens (a bug).
std::vector<std::int32_t> document_offsets(std::span<const std::int32_t> documents, std::int64_t T);

}  // namespace assay::impl::data
