#pragma once
// One micro-batch: B sequences of T tokens. Plain integers, no tensor library.
#include <cstdint>
#include <vector>

#include "spec/ops/cross_entropy/cross_entropy.hpp"

namespace assay::reference {

/// Every vector is [B, T], row-major. Token t of a sequence sees token s iff s <= t and both are of one
/// document.
struct Batch {
  static constexpr std::int64_t ignored =
      spec::cross_entropy::ignore;  ///< target of a token that does not count

  std::int64_t B = 0;                   ///< sequences
  std::int64_t T = 0;                   ///< tokens of a sequence
  std::vector<std::int64_t> ids;        ///< in [0, V)
  std::vector<std::int64_t> targets;    ///< in [0, V) or `ignored`
  std::vector<std::int64_t> documents;  ///< nondecreasing along T; empty: one document per sequence
  std::vector<std::int64_t> positions;  ///< >= 0, angle of the rotary embedding; restart at each document

  /// Tokens whose target counts.
  std::int64_t valid_tokens() const {
    std::int64_t count = 0;
    for (const std::int64_t target : targets) count += target != ignored;
    return count;
  }
};

}  // namespace assay::reference
