// What config.json calls the fields of a model, for errors in its own words.
#include <algorithm>
#include <string_view>

#include "spec/model/config_json.hpp"
#include "spec/model/fields.hpp"

namespace assay::spec::config_json {

namespace {
/// The key of the field that `check` calls `prefix` + its name; empty: no such field, or none of one name.
template <class Part>
std::string_view key_of(std::string_view name, std::string_view prefix, std::string_view type) {
  std::string_view key;
  if (!name.starts_with(prefix)) return key;
  name.remove_prefix(prefix.size());
  for_each(fields<Part>, [&](const auto& field) {
    if (const auto* found = field.config.of(type); found && field.name == name) key = found->name();
  });
  return key;
}
std::string_view config_json_key(std::string_view name, const ModelSpec& model) {
  const std::string_view type = to_string(model.family);
  if (const auto key = key_of<ModelSpec>(name, "", type); !key.empty()) return key;
  if (const auto key = key_of<Experts>(name, "experts.", type); !key.empty()) return key;
  if (const auto key = key_of<LatentAttention>(name, "latent_attention.", type); !key.empty()) return key;
  if (!model.rope_scaling) return "";
  return key_of<RopeScaling>(name, "", to_string(model.rope_scaling->kind));
}
}  // namespace

std::string in_config_json_words(const std::string& values, const ModelSpec& model, document::Item root,
                                 std::string& where) {
  std::string out;
  bool placed = false;
  for (std::size_t at = 0; at < values.size();) {
    const std::size_t end = std::min(values.find_first_of("= ,;", at), values.size());
    const std::string word = values.substr(at, end - at);
    const std::string_view key =
        end < values.size() && values[end] == '=' ? config_json_key(word, model) : "";
    out += key.empty() ? word : key;
    if (end < values.size()) out += values[end];
    at = end + 1;
    if (const auto value = !key.empty() && !placed ? root.find(key) : std::nullopt) {
      where = value->where();
      placed = true;
    }
  }
  return out;
}

}  // namespace assay::spec::config_json
