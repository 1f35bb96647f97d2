#pragma once
// Every parameter of a model: name, shape, place in the flat buffer. One list that reference, trainer,
// optimizer, checkpoint and FLOP count all read.
#include <cstdint>
#include <string>
#include <vector>

#include "spec/count.hpp"
#include "spec/model/model_spec.hpp"

namespace assay::spec {

enum class Role { embedding, norm, query, key, value, attention_output, gate, up, down, head };

/// One parameter tensor. Names are those of Hugging Face transformers
/// ("model.layers.0.self_attn.q_proj.weight").
struct Parameter {
  std::string name;
  std::vector<std::int64_t> shape;  ///< matrices [out, in]; embedding and head [V, D]; gains [D] or [E]
  Role role;
  std::int64_t block;   ///< 0 embedding, 1..L decoder blocks, L+1 final norm and head
  std::int64_t offset;  ///< first element in the flat buffer [elements]
  std::int64_t size;    ///< product of shape [elements]
  bool matrix() const { return shape.size() == 2; }  ///< matrices get weight decay, gains do not
};

/// Parameters in flat-buffer order. query|key|value of a block are adjacent without gap, as are gate|up, so
/// that one view [ (H+2K)*E, D ] or [ 2F, D ] is the fused matrix. Offsets of groups (fused matrices count as
/// one group, every other tensor as its own) are multiples of `alignment` elements. A tied head is not
/// listed: it is the embedding.
struct Inventory {
  std::vector<Parameter> parameters;
  std::int64_t flat_size = 0;  ///< elements of the flat buffer, alignment gaps included
  std::int64_t blocks = 0;     ///< L + 2

  const Parameter& at(const std::string& name) const;  ///< Errors: SpecError inventory_c1, unknown name
  Count parameter_count() const;                       ///< without gaps
  /// Half-open element range of one block in the flat buffer (blocks are contiguous and in order).
  struct Range {
    std::int64_t begin, end;
  };
  Range block_range(std::int64_t block) const;  ///< Errors: SpecError inventory_c3, no such block
};

/// Errors: SpecError model_c1.. (see `check`), inventory_c2 (alignment outside [1, 2^20] elements).
Inventory inventory(const ModelSpec& model, std::int64_t alignment = 64);

}  // namespace assay::spec
