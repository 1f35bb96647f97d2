// Reads the TOML form of a model. Every field is a key of its own name.
#include <algorithm>
#include <type_traits>
#include <utility>

#include "spec/error.hpp"
#include "spec/model/fields.hpp"
#include "spec/text/faults.hpp"
#include "spec/text/nearest.hpp"
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
  Faults faults;
  faults.gather([&] { table.allow_only(keys); });
  // A required field may be there under a name that is misspelt.
  std::vector<std::string> meant;
  for (std::size_t i = 0; i < std::min(table.size(), Faults::most); ++i)
    if (std::ranges::find(keys, table.key(i)) == keys.end())
      if (auto match = nearest(std::string_view(table.key(i)).substr(0, 80), keys)) meant.push_back(*match);
  Part part;
  for_each(fields<Part>, [&](const auto& field) {
    if (const auto found = table.find(field.name))
      faults.gather([&] { read(*found, field.name, part.*field.member); });
  });
  for_each(fields<Part>, [&](const auto& field) {
    if (field.required(part) && std::ranges::find(meant, field.name) == meant.end())
      faults.gather([&] { table.at(field.name, "add it (meaning: spec/model/model.md)"); });
  });
  faults.refuse();
  return part;
}

/// Where the first field stands that a broken constraint names, as in "experts.active=9 is not in [1, 8]".
std::string place_of(const std::string& values, Item root) {
  for (std::size_t end = values.find('='); end != values.npos; end = values.find('=', end + 1)) {
    const std::size_t begin = values.find_last_of(" ,;", end) + 1;
    const std::string name = values.substr(begin, end - begin);
    const std::size_t point = name.find('.');
    auto item = root.find(name.substr(0, point));
    if (item && point != name.npos && item->is(document::Kind::object))
      item = item->find(name.substr(point + 1));
    if (item) return item->where();
  }
  return root.where();
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
  Faults faults;
  for (const SpecError& broken : broken_constraints(model))
    faults.gather([&] {
      throw SpecError(broken.label(),
                      broken.values() + "; correct it in " + place_of(broken.values(), tree.root()));
    });
  faults.refuse();
  check_stated_counts(tree.root(), model);
  return model;
}

}  // namespace assay::spec
