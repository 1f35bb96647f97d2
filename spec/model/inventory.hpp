#pragma once
// Every parameter of a model: name, shape, place in the flat buffer. One list that reference, trainer,
// optimizer, checkpoint and FLOP count all read.
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "spec/count.hpp"
#include "spec/model/model_spec.hpp"

namespace assay::spec {

enum class Role {
  embedding,
  norm,
  query,
  key,
  value,
  attention_output,
  gate,
  up,
  down,
  head,
  bias,             ///< of any projection or norm
  positions,        ///< learned position table
  query_key_value,  ///< one matrix for the three (GPT-2)
  query_down,       ///< latent attention: D to Cq
  query_up,         ///< Cq to H E; D to H E where queries are not compressed
  key_value_down,   ///< D to Ckv + R
  key_value_up,     ///< Ckv to H (E - R + W)
  router,
  router_bias,
  expert_gate,
  expert_up,
  expert_down,
  shared_gate,
  shared_up,
  shared_down,
  multi_token_projection  ///< of hidden state and next embedding, 2 D to D
};

/// One parameter tensor. Names and shapes are those of the checkpoints that Hugging Face transformers writes
/// for the model's family ("model.layers.0.self_attn.q_proj.weight"); spec/model/model.md lists them.
struct Parameter {
  std::string name;
  std::vector<std::int64_t>
      shape;  ///< matrices [out, in] (gpt2: [in, out]); tables and head [V, D]; gains [D]
  Role role;
  std::int64_t block;   ///< 0 embedding, 1..L decoder blocks, L+1 final norm and head; multi-token: 0..
  std::int64_t offset;  ///< first element in the flat buffer [elements]
  std::int64_t size;    ///< product of shape [elements]
  bool matrix() const { return shape.size() == 2; }  ///< matrices get weight decay, gains and biases do not
  /// Moved by gradients; the router bias is not, and is stored but not counted as a parameter.
  bool learned() const { return role != Role::router_bias; }
};

/// Parameters in flat-buffer order. query|key|value of a block are adjacent without gap, as are their biases
/// and gate|up, so that one view [ (H+2K)*E, D ] or [ 2F, D ] is the fused matrix. Of the routed experts of a
/// block, gate_0|up_0|gate_1|up_1|... are one such group [X, 2G, D], down_0|down_1|... another, [X, D, G].
/// Offsets of groups (fused
/// matrices count as one group, every other tensor as its own) are multiples of `alignment` elements. A tied
/// head is not listed: it is the embedding.
struct Inventory {
  std::vector<Parameter> parameters;
  std::int64_t flat_size = 0;  ///< elements of the flat buffer, alignment gaps included
  std::int64_t blocks = 0;     ///< L + 2; of multi-token blocks, their number

  const Parameter& at(const std::string& name) const;  ///< Errors: SpecError inventory_c1, unknown name
  Count parameter_count() const;                       ///< of what is learned, without gaps
  /// Half-open element range of one block in the flat buffer (blocks are contiguous and in order).
  struct Range {
    std::int64_t begin, end;
  };
  Range block_range(std::int64_t block) const;  ///< Errors: SpecError inventory_c3, no such block
  std::span<const Parameter> parameters_of(std::int64_t block) const;
};

/// Everything but the multi-token blocks. Errors: SpecError model_c1.. (see `check`), inventory_c2 (alignment
/// outside [1, 2^20] elements).
Inventory inventory(const ModelSpec& model, std::int64_t alignment = 64);

/// The parameters that `wanted` picks, with places in a buffer of their own, as `inventory` gives them: what
/// stands side by side in `all` stays so. Their blocks stay those of `all`. Errors: SpecError inventory_c2
/// (as `inventory`). Of an rvalue their names move.
Inventory selection(const Inventory& all, const std::function<bool(const Parameter&)>& wanted,
                    std::int64_t alignment = 64);
Inventory selection(Inventory&& all, const std::function<bool(const Parameter&)>& wanted,
                    std::int64_t alignment = 64);
/// The gains of norms alone: for working weights of fewer bits than a gain needs
/// (spec/ops/rms_norm/rms_norm.md).
Inventory norm_gains(const Inventory& all, std::int64_t alignment = 64);

/// The multi-token blocks alone, without the embedding and the head that they share with the model: names of
/// "model.layers.L" and on. One block each; empty when the model has none. Errors: as `inventory`.
Inventory multi_token_inventory(const ModelSpec& model, std::int64_t alignment = 64);

}  // namespace assay::spec
