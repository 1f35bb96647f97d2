// Reads and writes the TOML form of a model. Every field is a key of its own name.
#include <charconv>

#include "spec/error.hpp"
#include "spec/model/model_spec.hpp"
#include "spec/text/quote.hpp"
#include "spec/text/toml.hpp"

namespace assay::spec {

namespace {

const std::vector<std::string> model_keys = {
    "name",     "family",     "vocab",        "width",    "layers",          "heads",
    "kv_heads", "head_dim",   "ffn",          "context",  "tied_embeddings", "qk_norm",
    "norm_eps", "rope_theta", "rope_scaling", "init_std", "parameters"};
const std::vector<std::string> scaling_keys = {"factor", "low_freq_factor", "high_freq_factor",
                                               "original_context"};

using document::Item;

Item required(Item table, const char* key) { return table.at(key, "add it (meaning: spec/model/model.md)"); }

Family family_from(Item name) {
  for (Family family : {Family::llama, Family::qwen3})
    if (name.text() == to_string(family)) return family;
  name.refuse("family " + quote(name.text()) + " is not known; give \"llama\" or \"qwen3\"");
}

RopeScaling scaling_from(Item table) {
  if (!table.is(document::Kind::object)) table.wrong("a table");
  table.allow_only(scaling_keys);
  return RopeScaling{.factor = required(table, "factor").real(),
                     .low_freq_factor = required(table, "low_freq_factor").real(),
                     .high_freq_factor = required(table, "high_freq_factor").real(),
                     .original_context = required(table, "original_context").integer()};
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
  const document::Tree tree = parse_toml(text, origin);
  const Item table = tree.root();
  table.allow_only(model_keys);
  const auto integer = [&](const char* key) { return required(table, key).integer(); };
  ModelSpec model;
  model.name = required(table, "name").text();
  model.family = family_from(required(table, "family"));
  model.vocab = integer("vocab");
  model.width = integer("width");
  model.layers = integer("layers");
  model.heads = integer("heads");
  model.kv_heads = integer("kv_heads");
  model.head_dim = integer("head_dim");
  model.ffn = integer("ffn");
  model.context = integer("context");
  model.tied_embeddings = required(table, "tied_embeddings").boolean();
  model.qk_norm = required(table, "qk_norm").boolean();
  model.norm_eps = required(table, "norm_eps").real();
  model.rope_theta = required(table, "rope_theta").real();
  if (const auto scaling = table.find("rope_scaling")) model.rope_scaling = scaling_from(*scaling);
  if (const auto init_std = table.find("init_std")) model.init_std = init_std->real();
  check(model);
  if (const auto parameters = table.find("parameters")) {
    const std::int64_t stated = parameters->integer();
    if (stated < 0 || Count(stated) != parameter_count(model))
      parameters->refuse("states " + std::to_string(stated) + " parameters, but its fields give " +
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
