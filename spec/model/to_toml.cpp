// Writes the TOML form of a model: what spec/model/model_toml.cpp reads.
#include "spec/model/fields.hpp"
#include "spec/text/json.hpp"
#include "spec/text/value.hpp"

namespace assay::spec {

namespace {

std::string toml(double value) { return json_real(value); }  // TOML's float
std::string toml(const std::string& text) { return toml_literal(text); }
std::string toml(std::int64_t value) { return std::to_string(value); }
std::string toml(bool value) { return value ? "true" : "false"; }
template <class Choice>
requires std::is_enum_v<Choice> std::string toml(Choice choice) {
  return toml(std::string(to_string(choice)));
}

template <class T>
constexpr bool is_table = false;
template <class Part>
constexpr bool is_table<std::optional<Part>> = true;

/// Lines of every field, defaults too: the text means the same whatever a later version's defaults are.
/// Tables come last, as TOML wants it.
template <class Part>
std::string lines(const Part& part) {
  std::string values, tables;
  for_each(fields<Part>, [&](const auto& field) {
    const auto& value = part.*field.member;
    if constexpr (!is_table<std::remove_cvref_t<decltype(value)>>)
      values += std::string(field.name) + " = " + toml(value) + "\n";
    else if (value)
      tables += std::string("\n[") + field.name + "]\n" + lines(*value);
  });
  return values + tables;
}

}  // namespace

std::string to_toml(const ModelSpec& model) { return lines(model); }

}  // namespace assay::spec
