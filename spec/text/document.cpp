#include "spec/text/document.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "spec/text/amount.hpp"
#include "spec/text/faults.hpp"
#include "spec/text/json.hpp"
#include "spec/text/nearest.hpp"
#include "spec/text/quote.hpp"
#include "spec/text/utf8.hpp"

namespace assay::spec::document {
namespace {

std::string at_position(const std::string& origin, Position position) {
  if (position.line == 0) return origin;
  return origin + ":" + std::to_string(position.line) + ":" + std::to_string(position.column);
}

/// "key" after "a.b" is "a.b.key", after nothing "key".
std::string joined(const std::string& path, std::string_view key) {
  return path.empty() ? std::string(key) : path + "." + std::string(key);
}

/// Sets `path` to where `wanted` is within `here`; false when it is not there.
bool find_path(const Node& here, const Node& wanted, std::string& path) {
  if (&here == &wanted) return true;
  const std::string start = path;
  if (const auto* list = std::get_if<Node::List>(&here.content)) {
    for (std::size_t i = 0; i < list->size(); ++i) {
      path = start + "[" + std::to_string(i) + "]";
      if (find_path((*list)[i], wanted, path)) return true;
    }
  } else if (const auto* object = std::get_if<Node::Object>(&here.content)) {
    for (const Entry& entry : *object) {
      path = joined(start, entry.key);
      if (find_path(entry.value, wanted, path)) return true;
    }
  }
  path = start;
  return false;
}

/// Always distinct from an integer: "6.0".
std::string real_text(double number) {
  const std::string text = json_number(number);
  return text.find_first_not_of("-0123456789") == text.npos ? text + ".0" : text;
}

}  // namespace

Node::Node() = default;
Node::Node(Content content, Position position) : content(std::move(content)), position(position) {}
Node::Node(Node&&) noexcept = default;
Node& Node::operator=(Node&&) noexcept = default;
Node::~Node() = default;

void Source::refuse(Position position, const std::string& what) const {
  throw UserError(code, at_position(origin, position) + ": " + what);
}

void Source::refuse(const Fault& fault) const {
  if (format == Format::toml) refuse(fault.position, "not valid TOML: " + fault.why);
  std::string at;
  if (fault.byte > 0) at = " at byte " + std::to_string(fault.byte);
  if (fault.position.line > 1)
    at += " (line " + std::to_string(fault.position.line) + ", column " +
          std::to_string(fault.position.column) + ")";
  refuse(Position(), "not valid JSON" + at + ": " + fault.why);
}

Kind Item::kind() const {
  static constexpr std::array kinds = {Kind::null, Kind::boolean, Kind::integer, Kind::integer, Kind::real,
                                       Kind::text, Kind::date,    Kind::list,    Kind::object};
  static_assert(kinds.size() == std::variant_size_v<Node::Content>);
  return kinds[node_->content.index()];
}

template <class T>
const T& Item::get(const char* expected) const {
  if (const T* value = std::get_if<T>(&node_->content)) return *value;
  wrong(expected);
}

bool Item::boolean() const { return get<bool>("true or false"); }
std::optional<std::int64_t> Item::whole() const {
  if (const auto* number = std::get_if<std::int64_t>(&node_->content)) return *number;
  if (tree_->source().format != Format::toml) return std::nullopt;
  if (const auto* text = std::get_if<std::string>(&node_->content)) return whole_number(*text);
  constexpr double exact = 0x1p53;  // above it a double may have been another number in the text
  const auto* real = std::get_if<double>(&node_->content);
  if (!real || std::abs(*real) > exact || *real != std::trunc(*real)) return std::nullopt;
  return static_cast<std::int64_t>(*real);
}

std::int64_t Item::integer() const {
  if (const auto number = whole()) return *number;
  return get<std::int64_t>(is(Kind::integer) ? "at most 9223372036854775807" : "an integer");
}
const std::string& Item::text() const { return get<std::string>("a text"); }
double Item::real() const {
  if (const auto* small = std::get_if<std::int64_t>(&node_->content)) return static_cast<double>(*small);
  if (const auto* large = std::get_if<std::uint64_t>(&node_->content)) return static_cast<double>(*large);
  return get<double>("a number");
}

std::size_t Item::size() const {
  if (const auto* list = std::get_if<Node::List>(&node_->content)) return list->size();
  return get<Node::Object>("an array").size();
}

Item Item::operator[](std::size_t index) const {
  if (const auto* list = std::get_if<Node::List>(&node_->content)) return {*tree_, (*list)[index]};
  return {*tree_, get<Node::Object>("an array")[index].value};
}

const std::string& Item::key(std::size_t index) const { return object()[index].key; }

const Node::Object& Item::object() const {
  return get<Node::Object>(tree_->source().format == Format::json ? "an object" : "a table");
}

std::optional<Item> Item::find(std::string_view key) const {
  for (const Entry& entry : object())
    if (entry.key == key) return Item(*tree_, entry.value);
  return std::nullopt;
}

Item Item::at(std::string_view key, std::string_view advice) const {
  if (const auto found = find(key)) return *found;
  refuse(quote(joined(path(), key)) + " is missing; " + std::string(advice));
}

void Item::allow_only(const std::vector<std::string>& known) const {
  Faults faults;
  for (const Entry& entry : object()) {
    if (faults.full()) break;
    if (std::find(known.begin(), known.end(), entry.key) != known.end()) continue;
    const std::string within = path();
    const auto match = nearest(std::string_view(entry.key).substr(0, 80), known);
    std::string all;
    for (const std::string& each : known) all += (all.empty() ? "" : ", ") + each;
    faults.gather([&] {
      tree_->source().refuse(
          entry.position,
          "unknown key " + quote(joined(within, entry.key)) +
              (match ? "; did you mean " + quote(joined(within, *match)) + "?" : "; known keys: " + all));
    });
  }
  faults.refuse();
}

std::string Item::path() const {
  std::string path;
  find_path(tree_->root_, *node_, path);
  return path;
}

std::string Item::shown() const {
  const bool json = tree_->source().format == Format::json;
  switch (kind()) {
    case Kind::null:
      return "null";
    case Kind::boolean:
      return std::get<bool>(node_->content) ? "true" : "false";
    case Kind::integer: {
      const auto* large = std::get_if<std::uint64_t>(&node_->content);
      return large ? std::to_string(*large) : std::to_string(std::get<std::int64_t>(node_->content));
    }
    case Kind::real:
      return real_text(std::get<double>(node_->content));
    case Kind::text:
      return quote(valid_utf8(std::string_view(std::get<std::string>(node_->content)).substr(0, 60)));
    case Kind::date:
      return "a date or time";
    case Kind::list:
      return "an array";
    case Kind::object:
      return json ? "an object" : "a table";
  }
  return "";
}

std::string Item::where() const { return at_position(tree_->source().origin, node_->position); }

std::string Item::where_key(std::size_t index) const {
  return at_position(tree_->source().origin, object()[index].position);
}

void Item::refuse(const std::string& what) const { tree_->source().refuse(node_->position, what); }

void Item::wrong(const std::string& expected) const {
  const std::string name = path();
  refuse((name.empty() ? "the whole text" : quote(name)) + " must be " + expected + ", not " + shown());
}

}  // namespace assay::spec::document
