#pragma once
// Keys and values of the tokens of several texts, of every layer: what a next token's attention reads of
// those before it, so that it is computed alone.
#include <ATen/core/Tensor.h>

#include <vector>

#include "impl/ops/attention/attention.hpp"
#include "spec/model/model_spec.hpp"

namespace assay::impl {

class KeyValueCache {
 public:
  /// Of `texts` texts of at most `tokens` tokens each. `model`: what this rank computes. Latent attention's
  /// keys and values are kept as all heads read them. Element type: that of attention's sums, fp32 for bf16.
  KeyValueCache(const spec::ModelSpec& model, std::int64_t texts, std::int64_t tokens, at::ScalarType compute,
                at::Device device, attention::Backend backend = attention::Backend::automatic);

  std::int64_t texts() const { return static_cast<std::int64_t>(lengths_.size()); }
  std::int64_t tokens() const { return tokens_; }                        ///< of a text, at most
  const std::vector<std::int64_t>& lengths() const { return lengths_; }  ///< of the texts so far [tokens]
  std::int64_t bytes() const;                                            ///< of all layers

  /// A forward pass over T tokens of each text begins, of which the first counts[b] go on behind text b.
  /// Several at once are the first of their texts. Returns their positions [texts, T] int32; undefined: 0 to
  /// T-1. Errors: std::invalid_argument (a bug).
  at::Tensor begin(std::int64_t T, const std::vector<std::int64_t>& counts);
  /// Attention of block `block`, from 1, over the tokens so far and those of the pass, whose keys and values
  /// are kept.
  attention::Forward attend(std::int64_t block, const attention::Heads& x);
  /// Row of [texts T] of the last token that counts of each text, of one without the first [texts].
  const at::Tensor& last_rows() const { return last_rows_; }
  void end();

 private:
  const std::int64_t tokens_;
  const std::int64_t window_;
  const attention::Backend backend_;
  std::vector<at::Tensor> keys_, values_;  ///< by block [texts, K, tokens, E], [texts, K, tokens, W]
  std::vector<std::int64_t> lengths_, counts_;
  std::int64_t T_ = 0;     ///< of the pass
  std::int64_t seen_ = 0;  ///< tokens of the longest text, those of the pass among them
  at::Tensor positions_;   ///< [texts] int64 of the pass's tokens, where it has one of each text
  at::Tensor last_rows_;
};

}  // namespace assay::impl
