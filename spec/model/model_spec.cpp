#include "spec/model/model_spec.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "spec/error.hpp"

namespace assay::spec {

namespace {
constexpr std::int64_t extent_limit = (std::int64_t{1} << 31) - 1;
constexpr std::int64_t layer_limit = 1 << 16;
constexpr std::int64_t parameter_limit = std::int64_t{1} << 53;

bool positive(double value) { return std::isfinite(value) && value > 0; }

void check_extents(const ModelSpec& m) {
  const std::pair<const char*, std::int64_t> extents[] = {
      {"vocab", m.vocab},       {"width", m.width},       {"layers", m.layers}, {"heads", m.heads},
      {"kv_heads", m.kv_heads}, {"head_dim", m.head_dim}, {"ffn", m.ffn},       {"context", m.context}};
  for (const auto& [field, value] : extents) {
    const std::int64_t limit = field == std::string_view("layers") ? layer_limit : extent_limit;
    // model_c1
    require(value >= 1 && value <= limit, "model_c1", [&, f = field, v = value] {
      return std::string(f) + "=" + std::to_string(v) + " is not in [1, " + std::to_string(limit) + "]";
    });
  }
}

void check_rope(const ModelSpec& m) {
  // model_c5
  require(positive(m.rope_theta), "model_c5", [&] { return "rope_theta=" + std::to_string(m.rope_theta); });
  if (!m.rope_scaling) return;
  const RopeScaling& s = *m.rope_scaling;
  // model_c6
  require(std::isfinite(s.factor) && s.factor >= 1 && positive(s.low_freq_factor) &&
              positive(s.high_freq_factor) && s.low_freq_factor < s.high_freq_factor &&
              s.original_context >= 1 && s.original_context <= extent_limit,
          "model_c6", [&] {
            return "rope_scaling factor=" + std::to_string(s.factor) +
                   ", low_freq_factor=" + std::to_string(s.low_freq_factor) +
                   ", high_freq_factor=" + std::to_string(s.high_freq_factor) +
                   ", original_context=" + std::to_string(s.original_context);
          });
}
}  // namespace

std::string_view to_string(Family family) { return family == Family::llama ? "llama" : "qwen3"; }

void check(const ModelSpec& m) {
  check_extents(m);
  // model_c2
  require(m.heads % m.kv_heads == 0, "model_c2", [&] {
    return "kv_heads=" + std::to_string(m.kv_heads) + " does not divide heads=" + std::to_string(m.heads);
  });
  // model_c3
  require(m.head_dim % 2 == 0, "model_c3",
          [&] { return "head_dim=" + std::to_string(m.head_dim) + " is odd"; });
  // model_c4
  require(positive(m.norm_eps), "model_c4", [&] { return "norm_eps=" + std::to_string(m.norm_eps); });
  check_rope(m);
  // model_c7
  require(positive(m.init_std), "model_c7", [&] { return "init_std=" + std::to_string(m.init_std); });
  // model_c8
  require(parameter_count(m) <= Count(parameter_limit), "model_c8", [&] {
    return parameter_count(m).to_string() + " parameters exceed " + std::to_string(parameter_limit);
  });
  // model_c9
  require(!m.name.empty() && m.name.size() <= 256 &&
              std::none_of(m.name.begin(), m.name.end(),
                           [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }),
          "model_c9",
          [&] { return "the name has " + std::to_string(m.name.size()) + " bytes or control characters"; });
}

Count parameter_count(const ModelSpec& m) {
  const Count D = m.width, E = m.head_dim;
  Count block =
      D * (Count(m.heads) + 2 * Count(m.kv_heads)) * E + Count(m.heads) * E * D + 3 * D * m.ffn + 2 * D;
  if (m.qk_norm) block += 2 * E;
  const Count matrices_of_words = m.tied_embeddings ? 1 : 2;
  return matrices_of_words * m.vocab * D + m.layers * block + D;
}

}  // namespace assay::spec
