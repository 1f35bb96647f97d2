#pragma once
// Drawn models and batches, small enough that a whole training step in double takes milliseconds. Everything
// is a pure function of the seed, so that a printed seed is a counterexample on every machine.
#include <cstdint>
#include <string>
#include <vector>

#include "reference/model/batch.hpp"
#include "spec/model/model_spec.hpp"

namespace assay::tests {

/// A Llama, Qwen2 or Qwen3 of 1 to 3 layers: tied or not, H/K in 1..3, odd and even D, F and V, H*E unlike D,
/// SwiGLU or GEGLU, with and without biases of q, k, v and Llama-3 frequency scaling, a third with a window.
/// Matrices have standard deviation 0.02 to 0.5, so that no gradient drowns in rounding.
spec::ModelSpec tiny_model(std::uint64_t seed);

/// The same with a mixture of experts in some layers or all: 1 to 7 experts of which 1 to all are visited,
/// dense layers in between, shared experts, both scorings.
spec::ModelSpec sparse_model(std::uint64_t seed);

/// The same with groups of experts, a router bias, a norm of queries and keys across heads.
spec::ModelSpec routed_model(std::uint64_t seed);

/// Those of an odd seed are sparse, the others dense; all with latent attention, queries compressed or not,
/// pairs of neighbours or halves, values wider and narrower than keys, some by yarn with a factor of scores.
spec::ModelSpec latent_model(std::uint64_t seed);

/// Named corners that a draw might miss, each with its reason in tiny_models.cpp; every one passes
/// spec::check.
std::vector<spec::ModelSpec> corner_models();

/// The same of latent attention: dense DeepSeek-V3.
std::vector<spec::ModelSpec> latent_models();

/// "qwen3 V=17 D=9 L=3 H=4 K=2 E=6 F=11 tied": for messages of failed tests.
std::string describe(const spec::ModelSpec& model);
/// "B=2 T=7 documents valid=9", likewise.
std::string describe(const reference::Batch& batch);

enum class Documents {
  whole,   ///< one document per sequence, `documents` left empty
  packed,  ///< uneven documents, some of one token, some empty (their number is skipped); positions restart
           ///< at each
};

enum class Ignored {
  none,
  some,       ///< each target with probability 1/3
  sequences,  ///< whole sequences, never all of them
  most,       ///< every target but one
};

/// Ids and targets are drawn apart from each other: a model cannot tell, and a mix-up of the two cannot hide.
/// At least one target of a batch counts. Some ids repeat, so that rows of the embedding's gradient are sums.
reference::Batch tiny_batch(const spec::ModelSpec& model, std::int64_t B, std::int64_t T, Documents documents,
                            Ignored ignored, std::uint64_t seed);

/// B in 1..4, T in 1..9, documents and ignored targets drawn as well.
reference::Batch tiny_batch(const spec::ModelSpec& model, std::uint64_t seed);

/// Sequences [begin, end) of a batch.
reference::Batch sequences(const reference::Batch& batch, std::int64_t begin, std::int64_t end);

/// The batch in pieces of `micro` sequences; the last holds what is left.
std::vector<reference::Batch> micro_batches(const reference::Batch& batch, std::int64_t micro);

}  // namespace assay::tests
