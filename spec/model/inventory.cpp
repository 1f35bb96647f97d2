#include "spec/model/inventory.hpp"

#include <algorithm>
#include <array>

#include "spec/error.hpp"
#include "spec/text/quantity.hpp"

namespace assay::spec {

namespace {

/// Appends parameters to an inventory and keeps the flat offset.
class Builder {
 public:
  Builder(Inventory& out, std::int64_t alignment) : out_(out), alignment_(alignment) {}

  void begin_block() { ++block_; }
  /// Adds a tensor on an aligned offset, or directly behind the one before when it is fused with it.
  void add(std::string name, std::vector<std::int64_t> shape, Role role, bool fused_with_last = false) {
    std::int64_t size = 1;
    for (std::int64_t extent : shape) size *= extent;
    const std::int64_t offset = fused_with_last ? end_ : aligned(end_);
    out_.parameters.push_back({std::move(name), std::move(shape), role, block_, offset, size});
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

/// Names and shapes of one model's parameters, block by block.
class Writer {
 public:
  Writer(Inventory& out, const ModelSpec& model, std::int64_t alignment)
      : m_(model), to_(out, alignment), gpt2_(model.family == Family::gpt2) {}

  void embedding() {
    to_.begin_block();
    to_.add(gpt2_ ? "transformer.wte.weight" : "model.embed_tokens.weight", {m_.vocab, m_.width},
            Role::embedding);
    if (m_.positions == Positions::learned)
      to_.add(gpt2_ ? "transformer.wpe.weight" : "model.embed_positions.weight", {m_.context, m_.width},
              Role::positions);
  }

  void decoder_block(std::int64_t layer) {
    to_.begin_block();
    if (gpt2_)
      gpt2_layers("transformer.h." + std::to_string(layer) + ".");
    else
      llama_layers("model.layers." + std::to_string(layer) + ".", m_.sparse(layer));
  }

  void head() {
    to_.begin_block();
    norm(gpt2_ ? "transformer.ln_f" : "model.norm");
    if (!m_.tied_embeddings) to_.add("lm_head.weight", {m_.vocab, m_.width}, Role::head);
  }

  void multi_token_block(std::int64_t layer) {
    to_.begin_block();
    const std::string at = "model.layers." + std::to_string(layer) + ".";
    norm(at + "enorm");
    norm(at + "hnorm");
    to_.add(at + "eh_proj.weight", {m_.width, 2 * m_.width}, Role::multi_token_projection);
    llama_layers(at, m_.experts.has_value());
    norm(at + "shared_head.norm");
  }

  std::int64_t flat_size() const { return to_.flat_size(); }

 private:
  void norm(const std::string& name) {
    to_.add(name + ".weight", {m_.width}, Role::norm);
    if (m_.norm_bias) to_.add(name + ".bias", {m_.width}, Role::bias);
  }
  void bias_if(bool wanted, const std::string& name, std::int64_t entries, bool fused_with_last = false) {
    if (wanted) to_.add(name + ".bias", {entries}, Role::bias, fused_with_last);
  }

  void gpt2_layers(const std::string& at) {
    const std::int64_t D = m_.width, HE = m_.heads * m_.head_dim, F = m_.ffn;
    norm(at + "ln_1");
    to_.add(at + "attn.c_attn.weight", {D, 3 * HE}, Role::query_key_value);
    bias_if(m_.qkv_bias, at + "attn.c_attn", 3 * HE);
    to_.add(at + "attn.c_proj.weight", {HE, D}, Role::attention_output);
    bias_if(m_.output_bias, at + "attn.c_proj", D);
    norm(at + "ln_2");
    to_.add(at + "mlp.c_fc.weight", {D, F}, Role::up);
    bias_if(m_.mlp_bias, at + "mlp.c_fc", F);
    to_.add(at + "mlp.c_proj.weight", {F, D}, Role::down);
    bias_if(m_.mlp_bias, at + "mlp.c_proj", D);
  }

  void llama_layers(const std::string& at, bool sparse) {
    norm(at + "input_layernorm");
    if (m_.latent)
      latent_attention(at + "self_attn.");
    else
      attention(at + "self_attn.");
    norm(at + "post_attention_layernorm");
    if (sparse)
      experts(at + (m_.family == Family::mixtral ? "block_sparse_moe." : "mlp."));
    else
      mlps({at + "mlp."}, m_.ffn, {"gate_proj", "up_proj", "down_proj"}, {Role::gate, Role::up, Role::down});
  }

  void attention(const std::string& at) {
    const std::int64_t D = m_.width, E = m_.head_dim, HE = m_.heads * E, KE = m_.kv_heads * E;
    to_.add(at + "q_proj.weight", {HE, D}, Role::query);
    to_.add(at + "k_proj.weight", {KE, D}, Role::key, true);
    to_.add(at + "v_proj.weight", {KE, D}, Role::value, true);
    bias_if(m_.qkv_bias, at + "q_proj", HE);
    bias_if(m_.qkv_bias, at + "k_proj", KE, true);
    bias_if(m_.qkv_bias, at + "v_proj", KE, true);
    if (m_.qk_norm) {
      to_.add(at + "q_norm.weight", {m_.qk_norm_across_heads ? HE : E}, Role::norm);
      to_.add(at + "k_norm.weight", {m_.qk_norm_across_heads ? KE : E}, Role::norm);
    }
    to_.add(at + "o_proj.weight", {D, HE}, Role::attention_output);
    bias_if(m_.output_bias, at + "o_proj", D);
  }

  void latent_attention(const std::string& at) {
    const LatentAttention& a = *m_.latent;
    const std::int64_t D = m_.width, H = m_.heads, E = m_.head_dim;
    if (a.query_rank > 0) {
      to_.add(at + "q_a_proj.weight", {a.query_rank, D}, Role::query_down);
      to_.add(at + "q_a_layernorm.weight", {a.query_rank}, Role::norm);
      to_.add(at + "q_b_proj.weight", {H * E, a.query_rank}, Role::query_up);
    } else {
      to_.add(at + "q_proj.weight", {H * E, D}, Role::query_up);
    }
    to_.add(at + "kv_a_proj_with_mqa.weight", {a.key_value_rank + a.rope_dim, D}, Role::key_value_down);
    to_.add(at + "kv_a_layernorm.weight", {a.key_value_rank}, Role::norm);
    to_.add(at + "kv_b_proj.weight", {H * (E - a.rope_dim + a.value_dim), a.key_value_rank},
            Role::key_value_up);
    to_.add(at + "o_proj.weight", {D, H * a.value_dim}, Role::attention_output);
  }

  using ThreeNames = std::array<const char*, 3>;  ///< of gate, up, down
  using ThreeRoles = std::array<Role, 3>;

  /// MLPs of one width: the matrices into all of them adjacent (gate|up of the first, of the second, ...),
  /// then their biases, then all matrices out of them and their biases.
  void mlps(const std::vector<std::string>& ats, std::int64_t inner, const ThreeNames& names,
            const ThreeRoles& roles) {
    const std::int64_t D = m_.width;
    const std::size_t first = gated(m_.mlp) ? 0 : 1;
    const auto stack = [&](std::size_t begin, std::size_t end, const auto& add) {
      bool behind_another = false;
      for (const std::string& at : ats)
        for (std::size_t i = begin; i < end; ++i, behind_another = true) {
          std::string name;
          name.reserve(at.size() + 24);  // tens of thousands of experts, each in one piece of memory
          add(name.append(at).append(names[i]), i, behind_another);
        }
    };
    stack(first, 2, [&](std::string& name, std::size_t i, bool behind_another) {
      to_.add(std::move(name.append(".weight")), {inner, D}, roles[i], behind_another);
    });
    stack(first, 2, [&](const std::string& name, std::size_t, bool behind_another) {
      bias_if(m_.mlp_bias, name, inner, behind_another);
    });
    stack(2, 3, [&](std::string& name, std::size_t i, bool behind_another) {
      to_.add(std::move(name.append(".weight")), {D, inner}, roles[i], behind_another);
    });
    stack(2, 3, [&](const std::string& name, std::size_t, bool behind_another) {
      bias_if(m_.mlp_bias, name, D, behind_another);
    });
  }

  void experts(const std::string& at) {
    const Experts& e = *m_.experts;
    const ThreeNames names = m_.family == Family::mixtral ? ThreeNames{"w1", "w3", "w2"}
                                                          : ThreeNames{"gate_proj", "up_proj", "down_proj"};
    to_.add(at + "gate.weight", {e.count, m_.width}, Role::router);
    if (e.router_bias) to_.add(at + "gate.e_score_correction_bias", {e.count}, Role::router_bias);
    std::vector<std::string> routed;
    for (std::int64_t expert = 0; expert < e.count; ++expert)
      routed.push_back(at + "experts." + std::to_string(expert) + ".");
    mlps(routed, e.width, names, {Role::expert_gate, Role::expert_up, Role::expert_down});
    if (e.shared_width > 0)
      mlps({at + "shared_experts."}, e.shared_width, {"gate_proj", "up_proj", "down_proj"},
           {Role::shared_gate, Role::shared_up, Role::shared_down});
  }

  const ModelSpec& m_;
  Builder to_;
  bool gpt2_;
};

void check_alignment(std::int64_t alignment) {
  // inventory_c2
  require(alignment >= 1 && alignment <= (1 << 20), "inventory_c2",
          [&] { return "alignment=" + std::to_string(alignment) + " elements"; });
}

void check_arguments(const ModelSpec& model, std::int64_t alignment) {
  check(model);
  check_alignment(alignment);
  // inventory_c4
  constexpr std::int64_t most = 1 << 22;
  const Count experts = model.experts ? Count(model.experts->count) * model.sparse_layers() : Count(0);
  require(experts <= Count(most), "inventory_c4",
          [&] { return "the model has " + grouped(experts) + " experts in its layers, more than 2^22"; });
}

}  // namespace

Inventory inventory(const ModelSpec& model, std::int64_t alignment) {
  check_arguments(model, alignment);
  Inventory out;
  out.blocks = model.layers + 2;
  Writer writer(out, model, alignment);
  writer.embedding();
  for (std::int64_t layer = 0; layer < model.layers; ++layer) writer.decoder_block(layer);
  writer.head();
  out.flat_size = writer.flat_size();
  return out;
}

Inventory multi_token_inventory(const ModelSpec& model, std::int64_t alignment) {
  check_arguments(model, alignment);
  Inventory out;
  out.blocks = model.multi_token_layers;
  Writer writer(out, model, alignment);
  for (std::int64_t i = 0; i < out.blocks; ++i) writer.multi_token_block(model.layers + i);
  out.flat_size = writer.flat_size();
  return out;
}

namespace {
/// Moves names and shapes out of an inventory that is not const.
template <class All>
Inventory selected(All& all, const std::function<bool(const Parameter&)>& wanted, std::int64_t alignment) {
  check_alignment(alignment);
  Inventory out;
  out.blocks = all.blocks;
  out.parameters.reserve(all.parameters.size());
  Builder builder(out, alignment);
  std::int64_t end = -1;  // in `all`, of the one added last
  for (auto& parameter : all.parameters) {
    if (!wanted(parameter)) continue;
    builder.add(std::move(parameter.name), std::move(parameter.shape), parameter.role,
                parameter.offset == end);
    out.parameters.back().block = parameter.block;
    end = parameter.offset + parameter.size;
  }
  out.flat_size = builder.flat_size();
  return out;
}
}  // namespace

Inventory selection(const Inventory& all, const std::function<bool(const Parameter&)>& wanted,
                    std::int64_t alignment) {
  return selected(all, wanted, alignment);
}

Inventory selection(Inventory&& all, const std::function<bool(const Parameter&)>& wanted,
                    std::int64_t alignment) {
  return selected(all, wanted, alignment);
}

Inventory norm_gains(const Inventory& all, std::int64_t alignment) {
  return selection(
      all, [](const Parameter& parameter) { return parameter.role == Role::norm; }, alignment);
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
  for (const Parameter& parameter : parameters)
    if (parameter.learned()) count += parameter.size;
  return count;
}

std::span<const Parameter> Inventory::parameters_of(std::int64_t block) const {
  const auto first_of = [&](std::int64_t b) {
    return std::partition_point(parameters.begin(), parameters.end(),
                                [&](const Parameter& parameter) { return parameter.block < b; });
  };
  return {first_of(block), first_of(block + 1)};
}

Inventory::Range Inventory::block_range(std::int64_t block) const {
  // inventory_c3
  require(block >= 0 && block < blocks, "inventory_c3",
          [&] { return "block " + std::to_string(block) + " of " + std::to_string(blocks); });
  const auto begin_of = [&](const Parameter* first) {
    return first == parameters.data() + parameters.size() ? flat_size : first->offset;
  };
  const std::span<const Parameter> of_block = parameters_of(block);
  return {begin_of(of_block.data()), begin_of(of_block.data() + of_block.size())};
}

}  // namespace assay::spec
