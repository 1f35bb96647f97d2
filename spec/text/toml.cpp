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

/// Where a byte above ASCII stands outside of quotes and comments, where TOML 1.0 allows none. toml++ 3.3 is
/// not asked: it takes some of them for code that is never reached, and what then happens is undefined. The
/// same holds right behind a line break that a backslash ends inside of three quotes.
std::optional<Place> foreign_byte(std::string_view text) {
  std::size_t line = 1, start = 0, at = text.starts_with("\xef\xbb\xbf") ? 3 : 0;
  const auto is_foreign = [&] { return at < text.size() && static_cast<unsigned char>(text[at]) >= 0x80; };
  const auto here = [&] {
    return Place{static_cast<std::uint32_t>(line), static_cast<std::uint32_t>(at - start + 1)};
  };
  const auto pass = [&] {
    if (text[at] == '\n') ++line, start = at + 1;
    ++at;
  };
  std::string_view closing;  // quotes, or the end of a comment's line; empty outside of both
  while (at < text.size()) {
    const char c = text[at];
    if (closing.empty()) {
      if (is_foreign()) return here();
      if (c == '#') closing = "\n";
      if (c == '"' || c == '\'') {
        const bool three = text.substr(at, 3) == (c == '"' ? "\"\"\"" : "'''");
        closing = text.substr(at, three ? 3 : 1);
        at += closing.size() - 1;
      }
      pass();
    } else if (text.substr(at, closing.size()) == closing) {
      const std::size_t end = at + closing.size();
      while (at < end) pass();
      // Two more quotes may belong to the text that three close.
      for (int more = 0; more < 2 && closing.size() == 3 && at < text.size() && text[at] == closing[0];
           ++more)
        pass();
      closing = {};
    } else if (c == '\n' && closing.size() == 1) {
      closing = {};  // not closed: the parser says so
    } else if (c == '\\' && closing[0] == '"') {
      pass();
      const std::size_t end = text.find_first_not_of(" \t\r", at);
      if (closing.size() == 3 && end != std::string_view::npos && text[end] == '\n') {
        while (at < text.size() && std::string_view(" \t\r\n").find(text[at]) != std::string_view::npos)
          pass();
        if (is_foreign()) return here();
      } else if (at < text.size()) {
        pass();
      }
    } else {
      pass();
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<document::Fault> read_toml(std::string_view text, Node& root) {
  if (const auto place = foreign_byte(text))
    return document::Fault{"a character outside of ASCII, which only quotes and comments may hold", 0,
                           *place};
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
