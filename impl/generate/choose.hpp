#pragma once
#include <cstdint>
#include <span>

namespace assay::impl::generate {

/// How a next token is chosen from its logits.
struct Sampling {
  double temperature = 1;  ///< logits are divided by it; 0: the token with the largest logit
  double top_p = 1;  ///< in (0, 1]: of the tokens, the fewest whose probabilities add up to at least this
  std::uint64_t seed = 1;
};

/// The token of these logits that a uniform number `u` in (0, 1] draws: the cumulative sum in the order of
/// the vocabulary is inverted. Of equal logits the first is the largest, and among equal probabilities top_p
/// takes the first. Errors: UserError(non_finite) where a logit is NaN or +infinity, or all are -infinity.
std::int64_t choose(std::span<const double> logits, const Sampling& sampling, double u);

}  // namespace assay::impl::generate
