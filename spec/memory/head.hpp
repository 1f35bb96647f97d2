#pragma once
// How the LM head is cut into chunks of tokens and how its GEMMs see the vocabulary.
// (spec/plan/plan.md)
#include <cstdint>

namespace assay::spec::memory {

/// Most logits that exist at a time [elements]: 0.5 GiB of bf16.
inline constexpr std::int64_t most_logits = std::int64_t{1} << 28;

/// Tokens of a chunk, for N tokens and a vocabulary of V: chunks of about equal size, in multiples of 128
/// tokens where there are several. N >= 1, V >= 1.
std::int64_t chunk_tokens(std::int64_t N, std::int64_t V, std::int64_t limit = most_logits);

/// Rows of the head's weight in a GEMM on a GPU, for a vocabulary of V: V where a row of logits is a multiple
/// of 16 bytes, as the fast algorithms need it, else the next multiple of 128. The added rows are zero.
std::int64_t padded_vocabulary(std::int64_t V, std::int64_t element_bytes);

}  // namespace assay::spec::memory
