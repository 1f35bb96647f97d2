// Reads and writes the TOML form of a model. Every field is a key of its own name.
#include <toml++/toml.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <type_traits>

#include "spec/error.hpp"
#include "spec/model/model_spec.hpp"
#include "spec/text/nearest.hpp"
#include "spec/text/quote.hpp"

namespace assay::spec {

namespace {

const std::vector<std::string> model_keys = {
    "name",     "family",     "vocab",        "width",    "layers",          "heads",
    "kv_heads", "head_dim",   "ffn",          "context",  "tied_embeddings", "qk_norm",
    "norm_eps", "rope_theta", "rope_scaling", "init_std", "parameters"};
const std::vector<std::string> scaling_keys = {"factor", "low_freq_factor", "high_freq_factor",
                                               "original_context"};

[[noreturn]] void refuse(const std::string& what) { throw UserError(ExitCode::usage, what); }

/// Typed access to one table, with errors that say where and what was expected.
class Fields {
 public:
  Fields(const toml::table& table, std::string origin, std::string within)
      : table_(table), origin_(std::move(origin)), within_(std::move(within)) {}

  void allow_only(const std::vector<std::string>& known) const {
    for (const auto& [key, node] : table_) {
      const std::string name(key.str());
      if (std::find(known.begin(), known.end(), name) != known.end()) continue;
      const auto match = nearest(std::string_view(name).substr(0, 80), known);
      std::string all;
      for (const std::string& entry : known) all += (all.empty() ? "" : ", ") + entry;
      refuse(place(node) + "unknown key " + quote(within_ + name) +
             (match ? "; did you mean " + quote(within_ + *match) + "?" : "; known keys: " + all));
    }
  }

  bool has(const char* key) const { return table_.contains(key); }

  template <class T>
  T required(const char* key) const {
    const toml::node* node = table_.get(key);
    if (!node)
      refuse(origin_ + ": key " + quote(within_ + key) +
             " is missing; add it (meaning: spec/model/model.md)");
    return as<T>(*node, key);
  }
  template <class T>
  T optional(const char* key, T otherwise) const {
    const toml::node* node = table_.get(key);
    return node ? as<T>(*node, key) : otherwise;
  }

  std::string place(const toml::node& node) const {
    return origin_ + ":" + std::to_string(node.source().begin.line) + ": ";
  }

 private:
  template <class T>
  T as(const toml::node& node, const char* key) const {
    if constexpr (std::is_same_v<T, double>) {  // integers are reals too; bools and strings are not
      if (node.is_integer() || node.is_floating_point()) return *node.value<double>();
      refuse(place(node) + quote(within_ + key) + " must be a number");
    } else if constexpr (std::is_same_v<T, std::int64_t>) {
      if (node.is_integer()) return node.as_integer()->get();
      refuse(place(node) + quote(within_ + key) + " must be an integer");
    } else if constexpr (std::is_same_v<T, bool>) {
      if (node.is_boolean()) return node.as_boolean()->get();
      refuse(place(node) + quote(within_ + key) + " must be true or false");
    } else {
      if (node.is_string()) return node.as_string()->get();
      refuse(place(node) + quote(within_ + key) + " must be a string");
    }
  }

  const toml::table& table_;
  std::string origin_, within_;
};

Family family_from(const std::string& name, const std::string& origin) {
  for (Family family : {Family::llama, Family::qwen3})
    if (name == to_string(family)) return family;
  refuse(origin + ": family " + quote(name) + " is not known; give \"llama\" or \"qwen3\"");
}

std::optional<RopeScaling> scaling_from(const toml::table& table, const Fields& fields,
                                        const std::string& origin) {
  const toml::node* node = table.get("rope_scaling");
  if (!node) return std::nullopt;
  if (!node->is_table()) refuse(fields.place(*node) + "\"rope_scaling\" must be a table");
  const Fields scaling(*node->as_table(), origin, "rope_scaling.");
  scaling.allow_only(scaling_keys);
  return RopeScaling{.factor = scaling.required<double>("factor"),
                     .low_freq_factor = scaling.required<double>("low_freq_factor"),
                     .high_freq_factor = scaling.required<double>("high_freq_factor"),
                     .original_context = scaling.required<std::int64_t>("original_context")};
}

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

}  // namespace

ModelSpec model_from_toml(std::string_view text, const std::string& origin) {
  toml::table table;
  try {
    table = toml::parse(text);
  } catch (const toml::parse_error& error) {
    refuse(origin + ":" + std::to_string(error.source().begin.line) + ":" +
           std::to_string(error.source().begin.column) + ": not TOML: " + std::string(error.description()));
  }
  const Fields fields(table, origin, "");
  fields.allow_only(model_keys);
  ModelSpec model;
  model.name = fields.required<std::string>("name");
  model.family = family_from(fields.required<std::string>("family"), origin);
  model.vocab = fields.required<std::int64_t>("vocab");
  model.width = fields.required<std::int64_t>("width");
  model.layers = fields.required<std::int64_t>("layers");
  model.heads = fields.required<std::int64_t>("heads");
  model.kv_heads = fields.required<std::int64_t>("kv_heads");
  model.head_dim = fields.required<std::int64_t>("head_dim");
  model.ffn = fields.required<std::int64_t>("ffn");
  model.context = fields.required<std::int64_t>("context");
  model.tied_embeddings = fields.required<bool>("tied_embeddings");
  model.qk_norm = fields.required<bool>("qk_norm");
  model.norm_eps = fields.required<double>("norm_eps");
  model.rope_theta = fields.required<double>("rope_theta");
  model.rope_scaling = scaling_from(table, fields, origin);
  model.init_std = fields.optional<double>("init_std", model.init_std);
  check(model);
  if (fields.has("parameters")) {
    const auto stated = fields.required<std::int64_t>("parameters");
    if (stated < 0 || Count(stated) != parameter_count(model))
      refuse(origin + ": states " + std::to_string(stated) + " parameters, but its fields give " +
             parameter_count(model).to_string() + "; correct one of them");
  }
  return model;
}

std::string to_toml(const ModelSpec& m) {
  const auto line = [](const char* key, const std::string& value) {
    return std::string(key) + " = " + value + "\n";
  };
  const auto whole = [&](const char* key, std::int64_t value) { return line(key, std::to_string(value)); };
  const auto flag = [&](const char* key, bool value) { return line(key, value ? "true" : "false"); };
  std::string text = line("name", toml_string(m.name)) +
                     line("family", toml_string(std::string(to_string(m.family)))) + whole("vocab", m.vocab) +
                     whole("width", m.width) + whole("layers", m.layers) + whole("heads", m.heads) +
                     whole("kv_heads", m.kv_heads) + whole("head_dim", m.head_dim) + whole("ffn", m.ffn) +
                     whole("context", m.context) + flag("tied_embeddings", m.tied_embeddings) +
                     flag("qk_norm", m.qk_norm) + line("norm_eps", real(m.norm_eps)) +
                     line("rope_theta", real(m.rope_theta)) + line("init_std", real(m.init_std));
  if (m.rope_scaling)
    text += "\n[rope_scaling]\n" + line("factor", real(m.rope_scaling->factor)) +
            line("low_freq_factor", real(m.rope_scaling->low_freq_factor)) +
            line("high_freq_factor", real(m.rope_scaling->high_freq_factor)) +
            whole("original_context", m.rope_scaling->original_context);
  return text;
}

}  // namespace assay::spec
