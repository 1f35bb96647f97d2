// Reads the TOML form of a model. Every field is a key of its own name.
#include <type_traits>
#include <utility>

#include "spec/error.hpp"
#include "spec/model/fields.hpp"
#include "spec/text/quote.hpp"
#include "spec/text/toml.hpp"

namespace assay::spec {

namespace {

using document::Item;

template <class Part>
Part part_from(Item table, const std::vector<std::string>& more_keys);

void read(Item item, const char*, std::string& value) { value = item.text(); }
void read(Item item, const char*, std::int64_t& value) { value = item.integer(); }
void read(Item item, const char*, double& value) { value = item.real(); }
void read(Item item, const char*, bool& value) { value = item.boolean(); }
template <class Choice>
requires std::is_enum_v<Choice>
void read(Item name, const char* key, Choice& value) {
  std::string all;
  for (Choice choice : choices<Choice>()) {
    if (name.text() == to_string(choice)) return void(value = choice);
    all += (all.empty() ? "" : ", ") + quote(to_string(choice));
  }
  name.refuse(key + (" " + quote(name.text())) + " is not known; give one of " + all);
}
template <class Part>
void read(Item item, const char*, std::optional<Part>& value) {
  if (!item.is(document::Kind::object)) item.wrong("a table");
  value = part_from<Part>(item, {});
}

/// Reads every field that the table has; the others keep their defaults, and those that the part requires
/// must be there. `more_keys`: of the table, read elsewhere.
template <class Part>
Part part_from(Item table, const std::vector<std::string>& more_keys) {
  std::vector<std::string> keys = more_keys;
  for_each(fields<Part>, [&](const auto& field) { keys.emplace_back(field.name); });
  table.allow_only(keys);
  Part part;
  for_each(fields<Part>, [&](const auto& field) {
    if (const auto found = table.find(field.name)) read(*found, field.name, part.*field.member);
  });
  for_each(fields<Part>, [&](const auto& field) {
    if (field.required(part)) table.at(field.name, "add it (meaning: spec/model/model.md)");
  });
  return part;
}

/// Holds the counts that a file states to those that its fields give.
void check_stated_counts(Item table, const ModelSpec& model) {
  const ParameterCounts counts = parameter_counts(model);
  const std::pair<const char*, Count> keys[] = {{"parameters", counts.total},
                                                {"published_parameters", counts.total},
                                                {"active_parameters", counts.active}};
  for (const auto& [key, count] : keys) {
    const auto stated = table.find(key);
    if (!stated) continue;
    if (stated->integer() < 0 || Count(stated->integer()) != count)
      stated->refuse(quote(key) + " states " + std::to_string(stated->integer()) + ", but the fields give " +
                     count.to_string() + "; correct one of them");
  }
}

}  // namespace

ModelSpec model_from_toml(std::string_view text, const std::string& origin) {
  const document::Tree tree = parse_toml(text, origin);
  const ModelSpec model =
      part_from<ModelSpec>(tree.root(), {"parameters", "active_parameters", "published_parameters"});
  check(model);
  check_stated_counts(tree.root(), model);
  return model;
}

}  // namespace assay::spec
