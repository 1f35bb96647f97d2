#include "impl/model/views.hpp"

#include <ATen/ATen.h>

namespace assay::impl {

namespace {
/// One matrix over `count` adjacent parameters starting at `first`, stacked along their rows.
at::Tensor stacked(const at::Tensor& flat, const spec::Inventory& inventory, const std::string& first,
                   std::int64_t rows, std::int64_t columns) {
  return flat.narrow(0, inventory.at(first).offset, rows * columns).view({rows, columns});
}

DecoderViews decoder(const at::Tensor& flat, const spec::Inventory& inventory, const at::Tensor& gains,
                     const spec::Inventory& gain_places, const spec::ModelSpec& model, std::int64_t layer) {
  const std::string prefix = "model.layers." + std::to_string(layer) + ".";
  const auto one = [&](const std::string& name) { return view(flat, inventory.at(prefix + name)); };
  const auto gain = [&](const std::string& name) { return view(gains, gain_places.at(prefix + name)); };
  DecoderViews out;
  out.norm_attention = gain("input_layernorm.weight");
  out.qkv = stacked(flat, inventory, prefix + "self_attn.q_proj.weight",
                    (model.heads + 2 * model.kv_heads) * model.head_dim, model.width);
  if (model.qk_norm) {
    out.q_norm = gain("self_attn.q_norm.weight");
    out.k_norm = gain("self_attn.k_norm.weight");
  }
  out.output = one("self_attn.o_proj.weight");
  out.norm_mlp = gain("post_attention_layernorm.weight");
  out.gate_up = stacked(flat, inventory, prefix + "mlp.gate_proj.weight", 2 * model.ffn, model.width);
  out.down = one("mlp.down_proj.weight");
  return out;
}
}  // namespace

at::Tensor view(const at::Tensor& flat, const spec::Parameter& parameter) {
  return flat.narrow(0, parameter.offset, parameter.size).view(parameter.shape);
}

std::vector<at::Tensor> beside_products(const at::Tensor& flat, std::int64_t begin, std::int64_t end,
                                        const spec::Inventory& places, std::int64_t block, bool tied) {
  std::vector<at::Tensor> parts;
  const auto add_up_to = [&](std::int64_t stop) {
    if (begin < stop) parts.push_back(flat.narrow(0, begin, stop - begin));
  };
  for (const spec::Parameter& parameter : places.parameters) {
    const bool product = parameter.matrix() && (parameter.role != spec::Role::embedding || tied);
    if (parameter.block != block || !product) continue;
    add_up_to(parameter.offset);
    begin = parameter.offset + parameter.size;
  }
  add_up_to(end);
  return parts;
}

BlockViews views(const at::Tensor& flat, const spec::Inventory& inventory, const at::Tensor& gains,
                 const spec::Inventory& gain_places, const spec::ModelSpec& model, std::int64_t block) {
  BlockViews out;
  if (block == 0) {
    out.embedding = view(flat, inventory.at("model.embed_tokens.weight"));
  } else if (block <= model.layers) {
    out.decoder = decoder(flat, inventory, gains, gain_places, model, block - 1);
  } else {
    out.norm = view(gains, gain_places.at("model.norm.weight"));
    out.head =
        view(flat, inventory.at(model.tied_embeddings ? "model.embed_tokens.weight" : "lm_head.weight"));
  }
  return out;
}

BlockViews views(const at::Tensor& flat, const spec::Inventory& inventory, const spec::ModelSpec& model,
                 std::int64_t block) {
  return views(flat, inventory, flat, inventory, model, block);
}

}  // namespace assay::impl
