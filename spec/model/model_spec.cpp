#include "spec/model/model_spec.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "spec/error.hpp"
#include "spec/ops/rope/rope.hpp"
#include "spec/text/quote.hpp"

namespace assay::spec {

namespace {
constexpr std::int64_t extent_limit = (std::int64_t{1} << 31) - 1;
constexpr std::int64_t layer_limit = 1 << 16;
constexpr std::int64_t multi_token_limit = 64;
constexpr std::int64_t parameter_limit = std::int64_t{1} << 53;

bool positive(double value) { return std::isfinite(value) && value > 0; }

/// The constraints that do not hold, in their order.
struct Broken {
  std::vector<SpecError> all;
  bool has(std::string_view label) const { return std::ranges::count(all, label, &SpecError::label) > 0; }
  template <class Values>
  void require(bool holds, std::string_view label, Values&& values) {
    if (!holds) all.emplace_back(label, values());
  }
};

/// One integer and the range that it must lie in.
struct Extent {
  const char* field;
  std::int64_t value, least, most;

  bool holds() const { return value >= least && value <= most; }
  std::string text() const {
    return std::string(field) + "=" + std::to_string(value) + " is not in [" + std::to_string(least) + ", " +
           std::to_string(most) + "]";
  }
};

void check_extents(const ModelSpec& m, Broken& broken) {
  for (const Extent& extent :
       {Extent{"vocab", m.vocab, 1, extent_limit}, Extent{"width", m.width, 1, extent_limit},
        Extent{"layers", m.layers, 1, layer_limit}, Extent{"heads", m.heads, 1, extent_limit},
        Extent{"kv_heads", m.kv_heads, 1, extent_limit}, Extent{"head_dim", m.head_dim, 1, extent_limit},
        Extent{"ffn", m.ffn, 1, extent_limit}, Extent{"context", m.context, 1, extent_limit}})
    // model_c1
    broken.require(extent.holds(), "model_c1", [&] { return extent.text(); });
}

void check_rope(const ModelSpec& m, Broken& broken) {
  // model_c5
  broken.require(positive(m.rope_theta), "model_c5",
                 [&] { return "rope_theta=" + std::to_string(m.rope_theta); });
  if (!m.rope_scaling) return;
  const RopeScaling& s = *m.rope_scaling;
  const std::string fault = s.original_context > extent_limit
                                ? "original_context=" + std::to_string(s.original_context)
                                : rope::fault_of(s, m.rope_dim(), m.rope_theta);
  // model_c6
  broken.require(fault.empty(), "model_c6", [&] { return "rope_scaling " + fault; });
}

void check_combination(const ModelSpec& m, Broken& broken) {
  // model_c10
  broken.require(!m.norm_bias || m.norm == Norm::layer_norm, "model_c10",
                 [] { return std::string("norm_bias=true with norm=rms_norm, which has a gain only"); });
  // model_c11
  broken.require(!m.rope_scaling || m.positions == Positions::rope, "model_c11",
                 [] { return std::string("rope_scaling is given with positions=learned"); });
  const bool gpt2 = m.kv_heads == m.heads && m.mlp == Mlp::gelu && m.positions == Positions::learned &&
                    m.norm == Norm::layer_norm && !m.qk_norm && !m.experts && !m.latent &&
                    m.multi_token_layers == 0;
  // model_c12
  broken.require(m.family != Family::gpt2 || gpt2, "model_c12", [] {
    return std::string(
        "family=gpt2 has names only for kv_heads=heads, mlp=gelu, positions=learned, norm=layer_norm and "
        "none of qk_norm, experts, latent_attention, multi_token_layers");
  });
}

void check_experts(const ModelSpec& m, Broken& broken) {
  if (!m.experts) return;
  const Experts& e = *m.experts;
  for (const Extent& extent :
       {Extent{"experts.count", e.count, 1, extent_limit}, Extent{"experts.active", e.active, 1, e.count},
        Extent{"experts.width", e.width, 1, extent_limit},
        Extent{"experts.shared_width", e.shared_width, 0, extent_limit},
        Extent{"experts.first_dense", e.first_dense, 0, m.layers - 1},
        Extent{"experts.every", e.every, 1, m.layers}})
    // model_c13
    broken.require(extent.holds(), "model_c13", [&] { return extent.text(); });
  if (broken.has("model_c13")) return;
  // model_c13
  broken.require(m.sparse_layers() >= 1, "model_c13", [&] {
    return "experts.first_dense=" + std::to_string(e.first_dense) +
           ", experts.every=" + std::to_string(e.every) + " leave no sparse layer of " +
           std::to_string(m.layers);
  });
}

void check_routing(const ModelSpec& m, Broken& broken) {
  if (!m.experts || broken.has("model_c13")) return;
  const Experts& e = *m.experts;
  for (const Extent& extent : {Extent{"experts.groups", e.groups, 1, e.count},
                               Extent{"experts.active_groups", e.active_groups, 1, e.groups}})
    // model_c17
    broken.require(extent.holds(), "model_c17", [&] { return extent.text(); });
  if (broken.has("model_c17")) return;
  const std::int64_t of_group = e.count / e.groups;
  // model_c17: the score of a group is the sum of its two best
  broken.require(e.count % e.groups == 0 && (e.groups == 1 || of_group >= 2), "model_c17", [&] {
    return "experts.groups=" + std::to_string(e.groups) +
           " must divide experts.count=" + std::to_string(e.count) + " into groups of two or more";
  });
  // model_c17
  broken.require(e.active <= e.active_groups * of_group, "model_c17", [&] {
    return "experts.active=" + std::to_string(e.active) + " exceeds the " +
           std::to_string(e.active_groups * of_group) +
           " experts of experts.active_groups=" + std::to_string(e.active_groups);
  });
  // model_c17
  broken.require(positive(e.scaling_factor), "model_c17",
                 [&] { return "experts.scaling_factor=" + std::to_string(e.scaling_factor); });
}

void check_latent(const ModelSpec& m, Broken& broken) {
  if (!m.latent) return;
  const LatentAttention& a = *m.latent;
  for (const Extent& extent : {Extent{"latent_attention.query_rank", a.query_rank, 0, extent_limit},
                               Extent{"latent_attention.key_value_rank", a.key_value_rank, 1, extent_limit},
                               Extent{"latent_attention.rope_dim", a.rope_dim, 2, m.head_dim - 1},
                               Extent{"latent_attention.value_dim", a.value_dim, 1, extent_limit}})
    // model_c14
    broken.require(extent.holds(), "model_c14", [&] { return extent.text(); });
  // model_c14
  broken.require(positive(a.norm_eps), "model_c14",
                 [&] { return "latent_attention.norm_eps=" + std::to_string(a.norm_eps); });
  // model_c14
  broken.require(
      a.rope_dim % 2 == 0 && m.kv_heads == m.heads && !m.qk_norm && !m.qkv_bias && !m.output_bias &&
          m.positions == Positions::rope,
      "model_c14", [&] {
        return "latent_attention with rope_dim=" + std::to_string(a.rope_dim) +
               ", heads=" + std::to_string(m.heads) + ", kv_heads=" + std::to_string(m.kv_heads) +
               ": rope_dim must be even, kv_heads equal heads, positions be rope, and qk_norm, qkv_bias "
               "and output_bias be false";
      });
}
}  // namespace

// No switch over a choice has a default: a new choice does not compile until each says what it is.
std::string_view to_string(Family family) {
  switch (family) {
    case Family::llama:
      return "llama";
    case Family::qwen2:
      return "qwen2";
    case Family::qwen3:
      return "qwen3";
    case Family::gpt2:
      return "gpt2";
    case Family::mixtral:
      return "mixtral";
    case Family::qwen3_moe:
      return "qwen3_moe";
    case Family::deepseek_v3:
      return "deepseek_v3";
    case Family::olmoe:
      return "olmoe";
  }
  return {};
}

std::string_view to_string(Norm norm) {
  switch (norm) {
    case Norm::rms_norm:
      return "rms_norm";
    case Norm::layer_norm:
      return "layer_norm";
  }
  return {};
}

std::string_view to_string(Mlp mlp) {
  switch (mlp) {
    case Mlp::swiglu:
      return "swiglu";
    case Mlp::gelu:
      return "gelu";
    case Mlp::geglu:
      return "geglu";
  }
  return {};
}

std::string_view to_string(Positions positions) {
  switch (positions) {
    case Positions::rope:
      return "rope";
    case Positions::learned:
      return "learned";
  }
  return {};
}

std::string_view to_string(RopeScalingKind kind) {
  switch (kind) {
    case RopeScalingKind::llama3:
      return "llama3";
    case RopeScalingKind::yarn:
      return "yarn";
  }
  return {};
}

std::string_view to_string(Scoring scoring) {
  switch (scoring) {
    case Scoring::softmax:
      return "softmax";
    case Scoring::sigmoid:
      return "sigmoid";
  }
  return {};
}

bool gated(Mlp mlp) {
  switch (mlp) {
    case Mlp::swiglu:
    case Mlp::geglu:
      return true;
    case Mlp::gelu:
      return false;
  }
  return false;
}

std::vector<SpecError> broken_constraints(const ModelSpec& m) {
  Broken broken;
  check_extents(m, broken);
  if (!broken.all.empty()) return broken.all;  // the others compute with them
  // model_c2
  broken.require(m.heads % m.kv_heads == 0, "model_c2", [&] {
    return "kv_heads=" + std::to_string(m.kv_heads) + " does not divide heads=" + std::to_string(m.heads);
  });
  // model_c3: latent attention turns rope_dim entries (model_c14)
  broken.require(m.head_dim % 2 == 0 || m.positions != Positions::rope || m.latent, "model_c3",
                 [&] { return "head_dim=" + std::to_string(m.head_dim) + " is odd"; });
  // model_c4
  broken.require(positive(m.norm_eps), "model_c4", [&] { return "norm_eps=" + std::to_string(m.norm_eps); });
  check_rope(m, broken);
  // model_c7
  broken.require(positive(m.init_std), "model_c7", [&] { return "init_std=" + std::to_string(m.init_std); });
  // model_c9
  broken.require(!m.name.empty() && m.name.size() <= 256 && printable(m.name) == m.name, "model_c9", [&] {
    return "the name " + quote(m.name) + " has " + std::to_string(m.name.size()) +
           " bytes, or characters that cannot be shown";
  });
  check_combination(m, broken);
  check_experts(m, broken);
  check_routing(m, broken);
  check_latent(m, broken);
  const Extent blocks{"multi_token_layers", m.multi_token_layers, 0, multi_token_limit};
  // model_c15
  broken.require(blocks.holds(), "model_c15", [&] { return blocks.text(); });
  const Extent window{"window", m.window, 0, extent_limit};
  // model_c16
  broken.require(window.holds(), "model_c16", [&] { return window.text(); });
  // model_c18
  broken.require(!m.qk_norm_across_heads || m.qk_norm, "model_c18",
                 [] { return std::string("qk_norm_across_heads=true with qk_norm=false"); });
  // model_c8, last: it counts, and the counts need all of the above
  if (!broken.all.empty()) return broken.all;
  const ParameterCounts counts = parameter_counts(m);
  broken.require(counts.total + counts.multi_token <= Count(parameter_limit), "model_c8", [&] {
    return (counts.total + counts.multi_token).to_string() + " parameters exceed " +
           std::to_string(parameter_limit);
  });
  return broken.all;
}

void check(const ModelSpec& m) {
  if (const auto broken = broken_constraints(m); !broken.empty()) throw broken.front();
}

}  // namespace assay::spec
