// The one file of spec and impl that compiles toml++ (ci/check_layers.py): each costs seconds.
#define TOML_ENABLE_FORMATTERS 0
#include "spec/text/toml.hpp"

#include <toml++/toml.h>

#include <algorithm>
#include <utility>

namespace assay::spec {
namespace {

using document::Node;
using document::Place;

Place place_of(const toml::source_region& region) { return {region.begin.line, region.begin.column}; }

// The parser allows 256 levels of nesting, so recursion is safe.
Node node_of(const toml::node& node);

Node::Object members_of(const toml::table& table) {
  Node::Object members;
  for (const auto& [key, value] : table)
    members.push_back({std::string(key.str()), place_of(key.source()), node_of(value)});
  // toml++ sorts by name.
  std::stable_sort(members.begin(), members.end(), [](const auto& left, const auto& right) {
    return std::pair(left.place.line, left.place.column) < std::pair(right.place.line, right.place.column);
  });
  return members;
}

Node node_of(const toml::node& node) {
  const Place place = place_of(node.source());
  switch (node.type()) {
    case toml::node_type::table:
      return {members_of(*node.as_table()), place};
    case toml::node_type::array: {
      Node::List list;
      for (const toml::node& entry : *node.as_array()) list.push_back(node_of(entry));
      return {std::move(list), place};
    }
    case toml::node_type::string:
      return {node.as_string()->get(), place};
    case toml::node_type::integer:
      return {node.as_integer()->get(), place};
    case toml::node_type::floating_point:
      return {node.as_floating_point()->get(), place};
    case toml::node_type::boolean:
      return {node.as_boolean()->get(), place};
    default:
      return {Node::Date(), place};
  }
}

}  // namespace

std::optional<document::Fault> read_toml(std::string_view text, Node& root) {
  try {
    root = node_of(toml::parse(text));
  } catch (const toml::parse_error& error) {
    // toml++ quotes what it met, line breaks and all; a fault is one line.
    std::string why(error.description());
    for (char& c : why)
      if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
    return document::Fault{std::move(why), 0, place_of(error.source())};
  }
  return std::nullopt;
}

document::Tree parse_toml(std::string_view text, const std::string& origin, ExitCode code) {
  document::Source source{origin, code, document::Format::toml};
  Node root;
  if (const auto fault = read_toml(text, root)) source.refuse(*fault);
  return {std::move(source), std::move(root)};
}

}  // namespace assay::spec
