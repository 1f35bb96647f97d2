#pragma once
// Texts that a model goes on with: all of a batch at once, a token of each at a time, with the keys and
// values of the tokens before kept.
#include <cstdint>
#include <functional>
#include <vector>

#include "impl/generate/choose.hpp"
#include "impl/model/model.hpp"

namespace assay::impl::generate {

using Ids = std::vector<std::int64_t>;

struct Request {
  std::vector<Ids> prompts;  ///< each of one token at least
  std::int64_t most = 0;     ///< new tokens of a text [tokens], >= 1
  Sampling sampling;
  Ids ends;                       ///< a text ends behind the first of these that is drawn
  std::int64_t tensor_ranks = 1;  ///< that compute the model together
};

struct Hooks {
  /// Of the tokens that this rank drew for the texts that go on, in their order, those that the ranks which
  /// compute together go on with; their logits may differ in the last bits.
  std::function<Ids(const Ids&)> agreed = {};
  /// A text's next token.
  std::function<void(std::size_t text, std::int64_t id)> drawn = {};
};

/// The new tokens of each text, the one that ends it among them. Randomness is Site::generation keyed by
/// (seed, number of the text, position in it): a text is the same whatever stands beside it, up to the last
/// bits of its logits. Prompt and new tokens must be within the model's context. Errors: UserError as choose.
std::vector<Ids> generate(Model& model, const Request& request, const Hooks& hooks = {});

}  // namespace assay::impl::generate
