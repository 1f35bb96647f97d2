#include "spec/model/inventory.hpp"

#include <algorithm>

#include "spec/error.hpp"

namespace assay::spec {

namespace {

/// Appends parameters to an inventory and keeps the flat offset.
class Builder {
 public:
  Builder(Inventory& out, std::int64_t alignment) : out_(out), alignment_(alignment) {}

  void begin_block() { ++block_; }
  /// Adds a tensor on an aligned offset, or directly behind the one before when it is fused with it.
  void add(const std::string& name, std::vector<std::int64_t> shape, Role role,
           bool fused_with_last = false) {
    std::int64_t size = 1;
    for (std::int64_t extent : shape) size *= extent;
    const std::int64_t offset = fused_with_last ? end_ : aligned(end_);
    out_.parameters.push_back({name, std::move(shape), role, block_, offset, size});
    end_ = offset + size;
  }
  std::int64_t flat_size() const { return aligned(end_); }

 private:
  std::int64_t aligned(std::int64_t offset) const {
    return (offset + alignment_ - 1) / alignment_ * alignment_;
  }

  Inventory& out_;
  std::int64_t alignment_;
  std::int64_t block_ = -1;
  std::int64_t end_ = 0;
};

void add_decoder_block(Builder& to, const ModelSpec& m, std::int64_t layer) {
  const std::int64_t D = m.width, E = m.head_dim, F = m.ffn;
  const std::string at = "model.layers." + std::to_string(layer) + ".";
  to.begin_block();
  to.add(at + "input_layernorm.weight", {D}, Role::norm);
  to.add(at + "self_attn.q_proj.weight", {m.heads * E, D}, Role::query);
  to.add(at + "self_attn.k_proj.weight", {m.kv_heads * E, D}, Role::key, true);
  to.add(at + "self_attn.v_proj.weight", {m.kv_heads * E, D}, Role::value, true);
  if (m.qk_norm) {
    to.add(at + "self_attn.q_norm.weight", {E}, Role::norm);
    to.add(at + "self_attn.k_norm.weight", {E}, Role::norm);
  }
  to.add(at + "self_attn.o_proj.weight", {D, m.heads * E}, Role::attention_output);
  to.add(at + "post_attention_layernorm.weight", {D}, Role::norm);
  to.add(at + "mlp.gate_proj.weight", {F, D}, Role::gate);
  to.add(at + "mlp.up_proj.weight", {F, D}, Role::up, true);
  to.add(at + "mlp.down_proj.weight", {D, F}, Role::down);
}

}  // namespace

Inventory inventory(const ModelSpec& model, std::int64_t alignment) {
  check(model);
  // inventory_c2
  require(alignment >= 1 && alignment <= (1 << 20), "inventory_c2",
          [&] { return "alignment=" + std::to_string(alignment) + " elements"; });
  Inventory out;
  out.blocks = model.layers + 2;
  Builder builder(out, alignment);
  builder.begin_block();
  builder.add("model.embed_tokens.weight", {model.vocab, model.width}, Role::embedding);
  for (std::int64_t layer = 0; layer < model.layers; ++layer) add_decoder_block(builder, model, layer);
  builder.begin_block();
  builder.add("model.norm.weight", {model.width}, Role::norm);
  if (!model.tied_embeddings) builder.add("lm_head.weight", {model.vocab, model.width}, Role::head);
  out.flat_size = builder.flat_size();
  return out;
}

const Parameter& Inventory::at(const std::string& name) const {
  const auto found =
      std::find_if(parameters.begin(), parameters.end(), [&](const auto& p) { return p.name == name; });
  // inventory_c1
  require(found != parameters.end(), "inventory_c1",
          [&] { return "no parameter is called \"" + name + "\""; });
  return *found;
}

Count Inventory::parameter_count() const {
  Count count;
  for (const Parameter& parameter : parameters) count += parameter.size;
  return count;
}

Inventory::Range Inventory::block_range(std::int64_t block) const {
  // inventory_c3
  require(block >= 0 && block < blocks, "inventory_c3",
          [&] { return "block " + std::to_string(block) + " of " + std::to_string(blocks); });
  const auto first_of = [&](std::int64_t b) {
    const auto found = std::partition_point(parameters.begin(), parameters.end(),
                                            [&](const Parameter& parameter) { return parameter.block < b; });
    return found == parameters.end() ? flat_size : found->offset;
  };
  return {first_of(block), first_of(block + 1)};
}

}  // namespace assay::spec
