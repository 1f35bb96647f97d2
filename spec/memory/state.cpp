#include "spec/memory/state.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "spec/memory/quantised.hpp"
#include "spec/ops/optimizer/optimizer.hpp"
#include "spec/parallel/gathered_codes.hpp"

namespace assay::spec::memory {

namespace {

/// Elements of the buffers for gathered blocks (impl/params/layouts/sharded_parameters.cpp): two in which
/// decoder blocks take turns, each as large as the largest of its own, and one for embedding and head, which
/// take turns in it unless they are one.
std::int64_t gathered_buffers(const Partition& partition, const ModelSpec& m) {
  std::array<std::int64_t, 2> blocks = {};
  for (std::int64_t b = 1; b <= m.layers; ++b) {
    std::int64_t& of_turn = blocks[static_cast<std::size_t>(b % 2)];
    of_turn = std::max(of_turn, partition.block_size(b));
  }
  const std::int64_t embedding = partition.block_size(0), head = partition.block_size(m.layers + 1);
  return blocks[0] + blocks[1] + (m.tied_embeddings ? embedding + head : std::max(embedding, head));
}

/// impl/params/parameter_buffers.cpp
void hold_parameters(const Setting& s, const ParameterSet& set, std::vector<Tensor>& held, Ledger& ledger) {
  const bool bf16 = s.dtype == Dtype::bf16;
  const Partition& partition = set.partition;
  const Layout& layout = set.layout;
  const std::int64_t shard = partition.shard_size,
                     size = layout.shards_weights() ? shard : partition.inventory.flat_size,
                     element = element_bytes(s.dtype), statistic = bf16 ? 4 : element,
                     of_state = element_bytes(bf16 ? s.states : s.dtype);
  const auto hold = [&](const char* name, std::vector<std::int64_t> shape, std::int64_t bytes) {
    held.push_back(ledger.make(name, Purpose::state, std::move(shape), bytes));
  };
  hold("weights", {size}, element);
  hold("gradients", {size}, statistic);
  for (const char* part : adamw::parts)  // beside weights of their type there are no master weights
    if (of_state != element || part != adamw::parts.front()) hold(part, {shard}, of_state);
  const std::int64_t gains = norm_gains(partition.inventory).flat_size;
  if (bf16 && gains > 0) hold("gains", {gains}, statistic);
  if (layout.shards_weights()) {
    const std::int64_t gathered = gathered_buffers(partition, s.model);
    hold("gathered_weights", {gathered}, element);
    hold("gathered_gradients", {gathered}, statistic);
    // impl/params/block_codes.cpp
    const GatheredCodes codes = gathered_codes(partition.inventory, s.linear, bf16);
    if (codes.linears > 0) {
      hold("gathered_amax", {codes.linears}, 4);
      hold("gathered_scales", {codes.linears, 4}, 4);
    }
    if (codes.vectors.flat_size > 0) hold("gathered_vectors", {codes.vectors.flat_size}, element);
  }
  // Two buffers for each reduction (impl/params/gradient_reduction.hpp).
  if (layout.ranks > 1 && s.rounded_sums) {
    hold("rounded_sums", {2, partition.largest_block()}, 2);
    if (layout.shards_weights() && layout.replicas() > 1)
      hold("rounded_shards", {2, partition.largest_block() / layout.shard_ranks}, 2);
  }
}

}  // namespace

/// Parameters and the table of rope.
std::vector<Tensor> hold_state(const Setting& s, const Share& share, Ledger& ledger) {
  ledger.enter("weights and optimizer state");
  std::vector<Tensor> held;
  for (const ParameterSet& set : share.sets) hold_parameters(s, set, held, ledger);
  const std::int64_t statistic = s.dtype == Dtype::bf16 ? 4 : element_bytes(s.dtype);
  const auto hold = [&](const char* name, std::vector<std::int64_t> shape, std::int64_t bytes) {
    held.push_back(ledger.make(name, Purpose::state, std::move(shape), bytes));
  };
  if (s.model.experts && s.model.experts->router_bias)
    hold("router_biases", {s.model.sparse_layers(), s.model.experts->count}, statistic);
  hold("rope_cosine", {s.sequence_length, s.model.rope_dim() / 2}, statistic);
  hold("rope_sine", {s.sequence_length, s.model.rope_dim() / 2}, statistic);
  return held;
}

std::vector<Tensor> hold_twins(const Setting& s, Ledger& ledger) {
  std::vector<Tensor> held;
  if (s.linear.recipe == quantise::Recipe::none || s.linear.weights != QuantiseWeights::step) return held;
  ledger.enter("weights and optimizer state");
  const quantise::Scaling scaling = quantise::quantisation(s.linear.recipe, quantise::Role::weight).scaling;
  const auto twin = [&](std::int64_t rows, std::int64_t columns, bool with_scales) {
    const Scales of_rows = scales(scaling, rows, columns);
    held.push_back(ledger.make("weight_twins", Purpose::state, {rows, columns}, 1));
    if (with_scales)
      held.push_back(ledger.make("weight_twin_scales", Purpose::state, of_rows.shape, of_rows.element_bytes));
  };
  for (std::int64_t block = 1; block <= s.model.layers; ++block) {
    if (s.linear.of(block, s.model.layers) == quantise::Recipe::none) continue;
    std::vector<std::array<std::int64_t, 2>> linears = block_linears(s.model, block - 1);
    if (s.linear.experts && s.model.sparse(block - 1))
      for (const auto& [out, in] : expert_linears(s.model))  // a rank's experts are one matrix
        linears.push_back({s.model.experts->count / s.expert_ranks * out, in});
    for (const auto& [out, in] : linears) {
      twin(out, in, true);
      twin(in, out, scaling != quantise::Scaling::tensor);  // which both orientations share
    }
  }
  return held;
}

}  // namespace assay::spec::memory
