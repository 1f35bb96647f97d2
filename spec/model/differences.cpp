#include "spec/model/differences.hpp"

#include <algorithm>

#include "spec/model/fields.hpp"
#include "spec/model/inventory.hpp"

namespace assay::spec {
namespace {

Value value_of(std::int64_t value) { return value; }
Value value_of(double value) { return value; }
Value value_of(bool value) { return std::string(value ? "true" : "false"); }
Value value_of(const std::string& value) { return value; }
template <class Choice>
requires std::is_enum_v<Choice> Value value_of(Choice choice) { return std::string(to_string(choice)); }
/// A table as one text: "factor = 8.0, kind = \"yarn\"".
template <class Part>
Value value_of(const std::optional<Part>& part) {
  std::string text;
  if (part)
    for_each(fields<Part>, [&](const auto& field) {
      text += (text.empty() ? "" : ", ") + std::string(field.name) + " = " +
              toml_literal(value_of((*part).*field.member));
    });
  return text.empty() ? "none" : text;
}

template <class Part>
void add(const std::string& prefix, const Part& now, const Part& before, std::vector<ModelDifference>& out) {
  for_each(fields<Part>, [&](const auto& field) {
    const auto &mine = now.*field.member, &other = before.*field.member;
    if (mine == other) return;
    const std::string name = prefix + field.name;
    if constexpr (requires { mine.has_value(); }) {
      if (mine && other) return add(name + ".", *mine, *other, out);
    }
    out.push_back({.field = name, .now = value_of(mine), .before = value_of(other)});
  });
}

}  // namespace

std::vector<ModelDifference> differences(const ModelSpec& now, const ModelSpec& before) {
  ModelSpec called_alike = before;
  called_alike.name = now.name;
  std::vector<ModelDifference> out;
  add("", now, called_alike, out);
  return out;
}

bool same_parameters(const ModelSpec& a, const ModelSpec& b) {
  return std::ranges::equal(inventory(a).parameters, inventory(b).parameters,
                            [](const Parameter& one, const Parameter& other) {
                              return one.name == other.name && one.shape == other.shape;
                            });
}

}  // namespace assay::spec
