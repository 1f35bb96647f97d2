#include "spec/parallel/placement.hpp"

#include <algorithm>
#include <string>

#include "spec/error.hpp"

namespace assay::spec {

namespace {

std::int64_t divided_up(std::int64_t number, std::int64_t by) { return (number + by - 1) / by; }

}  // namespace

void check_tensor_ranks(const ModelSpec& m, std::int64_t t, std::int64_t tokens) {
  const auto degree = [&] { return "parallel.tensor = " + std::to_string(t); };
  // placement_c1
  require(t >= 1, "placement_c1", degree);
  if (t == 1) return;
  const auto undivided = [&](std::int64_t extent, const char* what) {
    return degree() + " does not divide the " + std::to_string(extent) + " " + what;
  };
  // placement_c2
  require(m.heads % t == 0, "placement_c2", [&] { return undivided(m.heads, "query heads"); });
  // placement_c3
  require(m.kv_heads % t == 0 || t % m.kv_heads == 0, "placement_c3",
          [&] { return undivided(m.kv_heads, "key and value heads, and is no multiple of them"); });
  // placement_c4
  require(m.sparse_layers() == m.layers || m.ffn % t == 0, "placement_c4",
          [&] { return undivided(m.ffn, "entries of the MLP's inner width"); });
  // placement_c5
  require(t <= m.vocab, "placement_c5", [&] {
    return degree() + " is more than the " + std::to_string(m.vocab) + " entries of the vocabulary";
  });
  // placement_c6
  require(tokens % t == 0, "placement_c6", [&] {
    return undivided(
        tokens,
        "tokens of a micro-batch (batch.micro x batch.sequence_length), whose residual stream the "
        "tensor ranks hold in equal parts");
  });
  // placement_c7
  require(!m.output_bias && !m.mlp_bias, "placement_c7", [&] {
    return degree() + ": a bias behind the attention's output or in the MLP is not split over ranks yet";
  });
  // placement_c8
  require(!m.qk_norm_across_heads, "placement_c8", [&] {
    return degree() +
           ": the model normalises queries and keys across all heads (qk_norm_across_heads), of which a "
           "tensor rank holds only its part";
  });
  // placement_c20
  require(!m.latent, "placement_c20",
          [&] { return degree() + ": latent attention is not split over tensor ranks"; });
}

ModelSpec tensor_model(const ModelSpec& model, std::int64_t ranks) {
  if (ranks == 1) return model;
  ModelSpec own = model;
  own.heads = model.heads / ranks;
  own.kv_heads = std::max<std::int64_t>(1, model.kv_heads / ranks);
  if (model.sparse_layers() < model.layers) own.ffn = model.ffn / ranks;  // else no layer has it
  own.vocab = divided_up(model.vocab, ranks);
  return own;
}

Placement placement(const Parameter& whole, const Parameter& own, const TensorRank& rank) {
  Placement out;
  for (std::size_t d = 0; d < whole.shape.size(); ++d)
    if (own.shape[d] != whole.shape[d]) out.dimension = static_cast<int>(d);
  const auto split = static_cast<std::size_t>(std::max(out.dimension, 0));
  const std::int64_t all = whole.shape[split], held = own.shape[split];
  // The vocabulary is padded to equal parts, everything else divides: what is left over are copies.
  const bool vocabulary = whole.role == Role::embedding || whole.role == Role::head;
  out.holders = vocabulary ? 1 : held * rank.ranks / all;
  out.holder = rank.rank % out.holders;
  out.group = rank.rank / out.holders;
  out.begin = std::min(all, out.group * held);
  out.count = std::min(held, all - out.begin);
  return out;
}

std::int64_t kv_holders(const ModelSpec& model, std::int64_t ranks) {
  return std::max<std::int64_t>(1, ranks / model.kv_heads);
}

OwnVocabulary own_vocabulary(std::int64_t vocab, const TensorRank& rank) {
  const std::int64_t each = divided_up(vocab, rank.ranks), first = std::min(vocab, rank.rank * each);
  return {first, std::min(each, vocab - first)};
}

}  // namespace assay::spec
