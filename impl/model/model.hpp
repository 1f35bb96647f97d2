#pragma once
// The whole model: embedding, L decoder blocks, final norm, head and loss; forward and backward of one
// micro-batch. The step itself is spec/step/model.hpp, run over the trainer's op set.
#include <vector>

#include "impl/model/tensor_ops.hpp"

namespace assay::impl {

class Model {
 public:
  /// `context` bounds positions [tokens]. Parameters stay with `parameters`, which must outlive the model.
  /// `recompute`: what forward does not keep for backward; losses and gradients are the same for each.
  /// `linear`: precision of the linears of decoder blocks. Logits are of weights that are not quantised.
  /// `tensor`: the ranks that compute the model together; then `model` is one rank's
  /// (spec/parallel/placement.hpp), and each call is collective. `experts`: the ranks of an expert group, of
  /// which each brings tokens of its own (spec/parallel/expert_ranks.hpp); null: one rank.
  /// Errors: UserError of require_trainable.
  Model(const spec::ModelSpec& model, ParameterAccess& parameters, std::int64_t context,
        at::ScalarType compute, at::Device device, spec::Recompute recompute = spec::Recompute::norms_swiglu,
        const spec::LinearPrecision& linear = {}, const TensorParallel& tensor = {},
        Communicator* experts = nullptr);

  /// Runs one micro-batch; the loss's gradient is taken at once, as far as the head (spec/step/head.hpp),
  /// whose own is added to `parameters`. `normalizer`: valid tokens of the whole step over all micro-batches
  /// and ranks; `z`: z-loss coefficient; `auxiliary`: losses of routers. Errors: SpecError of the ops.
  Loss forward(const TokenBatch& batch, const Normalizer& normalizer, double z, Activations& saved,
               const router::Auxiliary& auxiliary = {});

  /// Adds the gradients of one micro-batch's loss to those of `parameters` and consumes `saved`.
  /// `auxiliary`: as in forward.
  void backward(const TokenBatch& batch, Activations saved, const router::Auxiliary& auxiliary = {});

  const spec::ModelSpec& spec() const { return model_; }
  /// Cross-entropy of each token [N] of a batch, fp64, 0 where its target is ignored, in the precision of
  /// training: forward alone, nothing kept.
  at::Tensor token_losses(const TokenBatch& batch);
  /// Logits [N, V] of a batch, of a tensor rank's part of the vocabulary; nothing kept.
  at::Tensor logits(const TokenBatch& batch);
  /// Logits [B, V] of what follows each text, of the whole vocabulary. `tokens` [B, T] int64 go on behind
  /// those in `cache`: of text b the first counts[b], which the cache holds from here on; the rest is read
  /// and changes nothing. Several tokens at once begin all texts. With several tensor ranks B is a multiple
  /// of their number.
  at::Tensor next_logits(const at::Tensor& tokens, const std::vector<std::int64_t>& counts,
                         KeyValueCache& cache);
  /// An empty cache of `texts` texts of at most `tokens` tokens.
  KeyValueCache cache(std::int64_t texts, std::int64_t tokens) const;

  /// Pairs of tokens of the batch that each head of each block works on, where documents are separate.
  std::int64_t visible_pairs(const TokenBatch& batch);

  /// The weights are others from here on.
  void weights_changed() { twins_.weights_changed(); }
  /// Makes the FP8 twins that are kept of the weights as they are now, where `parameters` hold all of them;
  /// else each block's are made when it is acquired.
  void quantise_weights();

  /// Every op from here on is shown to `observer` before it runs; nullptr: to none.
  void observe(OpObserver* observer) { observer_ = observer; }

  /// From here on `hook` is called with the load of every sparse layer (tensor_ops.hpp).
  void on_arrival(ArrivalHook hook) { arrival_ = std::move(hook); }

  /// From here on `backend` computes attention (attention::Form).
  void attend_by(attention::Backend backend) { attention_ = backend; }

  /// Chunks of the head hold at most so many logits from here on.
  void limit_chunks(std::int64_t logits) { chunk_logits_ = logits; }

 private:
  TensorOps::Context context(const TokenBatch& batch);

  const spec::ModelSpec model_;
  ParameterAccess& parameters_;
  rope::Table rope_table_;
  const spec::Recompute recompute_;
  const spec::LinearPrecision linear_;
  const at::ScalarType compute_;
  WeightTwins twins_;
  const TensorParallel tensor_;
  Communicator* const experts_;
  OpObserver* observer_ = nullptr;
  ArrivalHook arrival_;
  std::int64_t chunk_logits_ = spec::memory::most_logits;
  attention::Backend attention_ = attention::Backend::automatic;
  at::Device device_;
};

}  // namespace assay::impl
