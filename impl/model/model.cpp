#include "impl/model/model.hpp"

#include <ATen/ATen.h>

#include <utility>

#include "spec/model/trainable.hpp"
#include "spec/ops/rope/rope.hpp"

namespace assay::impl {

Model::Model(const spec::ModelSpec& model, ParameterAccess& parameters, std::int64_t context,
             at::ScalarType compute, at::Device device, spec::Recompute recompute,
             const spec::LinearPrecision& linear, const TensorParallel& tensor, Communicator* experts)
    : model_(model),
      parameters_(parameters),
      rope_table_(rope::table(spec::rope::inverse_frequencies(model), context, compute, device,
                              spec::rope::form_of(model).factor)),
      recompute_(recompute),
      linear_(linear),
      compute_(compute),
      twins_(model.layers),
      tensor_(tensor),
      experts_(experts),
      device_(device) {
  spec::require_trainable(model);
}

TensorOps::Context Model::context(const TokenBatch& batch) {
  return {.model = model_,
          .rope_table = rope_table_,
          .batch = batch,
          .parameters = &parameters_,
          .linear = &linear_,
          .compute = compute_,
          .twins = linear_.weights == spec::QuantiseWeights::step ? &twins_ : nullptr,
          .observer = observer_,
          .tensor = tensor_,
          .experts = experts_,
          .arrival = &arrival_,
          .chunk_logits = chunk_logits_,
          .attention = attention_};
}

Loss Model::forward(const TokenBatch& batch, const Normalizer& normalizer, double z, Activations& saved,
                    const router::Auxiliary& auxiliary) {
  TensorOps ops(context(batch), normalizer, z, auxiliary);
  spec::step::forward(ops, recompute_, saved);
  return ops.loss();
}

void Model::backward(const TokenBatch& batch, Activations saved, const router::Auxiliary& auxiliary) {
  TensorOps ops(context(batch), 1, 0, auxiliary);
  spec::step::backward(ops, std::move(saved));
}

at::Tensor Model::token_losses(const TokenBatch& batch) {
  TensorOps ops(context(batch));
  return spec::step::token_losses(ops);
}

at::Tensor Model::logits(const TokenBatch& batch) {
  TensorOps::Context unquantised = context(batch);
  unquantised.linear = nullptr;
  TensorOps ops(unquantised);
  return spec::step::logits(ops);
}

KeyValueCache Model::cache(std::int64_t texts, std::int64_t tokens) const {
  return {model_, texts, tokens, compute_, device_, attention_};
}

at::Tensor Model::next_logits(const at::Tensor& tokens, const std::vector<std::int64_t>& counts,
                              KeyValueCache& cache) {
  const std::int64_t B = tokens.size(0), T = tokens.size(1);
  const TokenBatch batch{.B = B,
                         .T = T,
                         .inputs = tokens.to(device_).view({-1}),
                         .targets = {},
                         .positions = cache.begin(T, counts),
                         .documents = {}};
  TensorOps::Context unquantised = context(batch);
  unquantised.linear = nullptr;
  unquantised.cache = &cache;
  TensorOps ops(unquantised);
  const at::Tensor own = spec::step::logits(ops, [&](const TensorOps::Operand& rows) {
    return TensorOps::Operand{rows.value.index_select(0, cache.last_rows()), {}};
  });
  cache.end();
  if (tensor_.size() == 1) return own;
  // Columns of each rank, one rank after the other: [t, B, V/t].
  const at::Tensor all = at::empty({tensor_.size(), own.size(0), own.size(1)}, own.options());
  tensor_.ranks->wait(tensor_.ranks->begin_all_gather(own.view({-1}), all.view({-1})));
  return all.transpose(0, 1).reshape({own.size(0), -1}).narrow(1, 0, tensor_.vocab);
}

std::int64_t Model::visible_pairs(const TokenBatch& batch) {
  return TensorOps(context(batch)).mask().visible_pairs();
}

void Model::quantise_weights() {
  using spec::quantise::Recipe;
  if (linear_.weights != spec::QuantiseWeights::step) return;
  for (std::int64_t block = 1; block <= model_.layers; ++block) {
    if (linear_.of(block, model_.layers) == Recipe::none) continue;
    twins_.of(block, parameters_.acquire(block, Weights::values).decoder, linear_, experts_);
    parameters_.release(block);
  }
}

}  // namespace assay::impl
