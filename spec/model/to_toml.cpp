// Writes the TOML form of a model: what spec/model/model_toml.cpp reads.
#include <charconv>

#include "spec/model/model_spec.hpp"

namespace assay::spec {

namespace {

/// Shortest text that reads back as the same double, always with a point or an exponent (TOML's float).
std::string real(double value) {
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  std::string text(buffer, end);
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

std::string toml_string(const std::string& text) {
  std::string out = "\"";
  for (char c : text) out += c == '"' || c == '\\' ? std::string{'\\', c} : std::string{c};
  return out + "\"";
}

/// The lines of a TOML table, in the order they are added.
class Lines {
 public:
  Lines& add(const char* key, const std::string& value) {
    text_ += std::string(key) + " = " + value + "\n";
    return *this;
  }
  Lines& add(const char* key, const char* value) { return add(key, std::string(value)); }
  Lines& add(const char* key, std::string_view name) { return add(key, toml_string(std::string(name))); }
  Lines& add(const char* key, std::int64_t value) { return add(key, std::to_string(value)); }
  Lines& add(const char* key, double value) { return add(key, real(value)); }
  Lines& add(const char* key, bool value) { return add(key, value ? "true" : "false"); }
  /// The same, left out when it is the default.
  template <class T>
  Lines& add_unless(const T& standard, const char* key, const T& value) {
    return value == standard ? *this : add(key, value);
  }
  Lines& begin(const char* table) {
    text_ += std::string("\n[") + table + "]\n";
    return *this;
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

}  // namespace

std::string to_toml(const ModelSpec& m) {
  Lines out;
  out.add("name", std::string_view(m.name))
      .add("family", to_string(m.family))
      .add("vocab", m.vocab)
      .add("width", m.width)
      .add("layers", m.layers)
      .add("heads", m.heads)
      .add("kv_heads", m.kv_heads)
      .add("head_dim", m.head_dim)
      .add("ffn", m.ffn)
      .add("context", m.context)
      .add_unless(to_string(Norm::rms_norm), "norm", to_string(m.norm))
      .add_unless(to_string(Mlp::swiglu), "mlp", to_string(m.mlp))
      .add_unless(to_string(Positions::rope), "positions", to_string(m.positions))
      .add_unless(false, "qkv_bias", m.qkv_bias)
      .add_unless(false, "output_bias", m.output_bias)
      .add_unless(false, "mlp_bias", m.mlp_bias)
      .add_unless(false, "norm_bias", m.norm_bias)
      .add("tied_embeddings", m.tied_embeddings)
      .add("qk_norm", m.qk_norm)
      .add("norm_eps", m.norm_eps)
      .add("rope_theta", m.rope_theta)
      .add("init_std", m.init_std)
      .add_unless(std::int64_t{0}, "multi_token_layers", m.multi_token_layers);
  if (m.rope_scaling) {
    out.begin("rope_scaling")
        .add("kind", to_string(m.rope_scaling->kind))
        .add("factor", m.rope_scaling->factor);
    if (m.rope_scaling->kind == RopeScalingKind::llama3)
      out.add("low_freq_factor", m.rope_scaling->low_freq_factor)
          .add("high_freq_factor", m.rope_scaling->high_freq_factor);
    out.add("original_context", m.rope_scaling->original_context);
  }
  if (m.experts)
    out.begin("experts")
        .add("count", m.experts->count)
        .add("active", m.experts->active)
        .add("width", m.experts->width)
        .add("shared_width", m.experts->shared_width)
        .add("first_dense", m.experts->first_dense)
        .add("every", m.experts->every)
        .add("router_bias", m.experts->router_bias);
  if (m.latent)
    out.begin("latent_attention")
        .add("query_rank", m.latent->query_rank)
        .add("key_value_rank", m.latent->key_value_rank)
        .add("rope_dim", m.latent->rope_dim)
        .add("value_dim", m.latent->value_dim);
  return out.text();
}

}  // namespace assay::spec
