#pragma once
// A vocabulary that tensor ranks share: each holds consecutive rows of the embedding table, and the columns
// of the logits that belong to them. Source: Shoeybi et al., "Megatron-LM", arXiv:1909.08053, section 3.
#include <cstdint>

namespace assay::spec {

/// What an op holds of the vocabulary: all of it, or the slice of one tensor rank, which may be empty.
enum class Vocabulary { whole, slice };

/// Id or target of a token that belongs to the slice of another rank. It is not `cross_entropy::ignore`: the
/// token takes part in the loss.
inline constexpr std::int64_t foreign = -1;

}  // namespace assay::spec
