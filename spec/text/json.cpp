#include "spec/text/json.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "spec/text/json_events.hpp"
#include "spec/text/quote.hpp"
#include "spec/text/utf8.hpp"

namespace assay::spec {
namespace {

using document::Entry;
using document::Node;

/// A key that occurs twice, or nothing.
const std::string* repeated_key(const Node::Object& object) {
  constexpr std::size_t few = 32;  // below it, comparing all pairs beats sorting
  if (object.size() <= few) {
    for (std::size_t i = 1; i < object.size(); ++i)
      for (std::size_t j = 0; j < i; ++j)
        if (object[i].key == object[j].key) return &object[i].key;
    return nullptr;
  }
  std::vector<const std::string*> keys;
  keys.reserve(object.size());
  for (const Entry& entry : object) keys.push_back(&entry.key);
  std::sort(keys.begin(), keys.end(), [](auto* left, auto* right) { return *left < *right; });
  const auto twice =
      std::adjacent_find(keys.begin(), keys.end(), [](auto* left, auto* right) { return *left == *right; });
  return twice == keys.end() ? nullptr : *twice;
}

/// Builds the tree. `open_` are the containers that have begun and not ended: each is the last value of the
/// one before, which gets no other value until it ends, so the pointers hold.
class TreeBuilder final : public JsonEvents {
 public:
  explicit TreeBuilder(Node& root) : root_(root) {}

  bool null() override { return add(std::monostate()); }
  bool boolean(bool value) override { return add(value); }
  bool negative(std::int64_t number) override { return add(number); }
  bool natural(std::uint64_t number) override {
    if (number > std::uint64_t{INT64_MAX}) return add(number);
    return add(static_cast<std::int64_t>(number));
  }
  bool real(double number) override { return add(number); }
  bool text(std::string& value) override { return add(std::move(value)); }
  bool begin_object() override { return begin(Node::Object()); }
  bool begin_list() override { return begin(Node::List()); }
  bool key(std::string& key) override {
    std::get<Node::Object>(open_.back()->content).push_back({std::move(key), {}, {}});
    return true;
  }
  bool end_object() override {
    if (const std::string* key = repeated_key(std::get<Node::Object>(open_.back()->content))) {
      fault = {"key " + quote(*key) + " occurs twice in one object", 0, {}};
      return false;
    }
    open_.pop_back();
    return true;
  }
  bool end_list() override {
    open_.pop_back();
    return true;
  }

  std::optional<document::Fault> fault;

 private:
  Node& slot() {
    if (open_.empty()) return root_;
    Node::Content& content = open_.back()->content;
    if (auto* list = std::get_if<Node::List>(&content)) return list->emplace_back();
    return std::get<Node::Object>(content).back().value;
  }
  bool add(Node::Content content) {
    slot().content = std::move(content);
    return true;
  }
  bool begin(Node::Content content) {
    if (open_.size() == json_depth_limit) {
      fault = {
          "more than " + std::to_string(json_depth_limit) + " arrays and objects within each other", 0, {}};
      return false;
    }
    Node& node = slot();
    node.content = std::move(content);
    open_.push_back(&node);
    return true;
  }

  Node& root_;
  std::vector<Node*> open_;
};

}  // namespace

std::optional<document::Fault> read_json(std::string_view text, Node& root) {
  TreeBuilder builder(root);
  auto fault = read_json_events(text, builder);
  return fault ? std::move(fault) : std::move(builder.fault);
}

document::Tree parse_json(std::string_view text, const std::string& origin, ExitCode code) {
  document::Source source{origin, code, document::Format::json};
  Node root;
  if (const auto fault = read_json(text, root)) source.refuse(*fault);
  return {std::move(source), std::move(root)};
}

std::string json_string(std::string_view text) {
  std::string out = "\"";
  const auto escape = [&](char32_t unit) {
    char digits[12];
    std::snprintf(digits, sizeof digits, "\\u%04x", static_cast<unsigned>(unit));
    out += digits;
  };
  const std::string valid = valid_utf8(text);
  for (std::size_t at = 0; at < valid.size();) {
    const std::string_view one =
        std::string_view(valid).substr(at, utf8_length(std::string_view(valid).substr(at)));
    const char32_t point = code_point(one);
    at += one.size();
    if (point == '"' || point == '\\') {
      out += {'\\', one[0]};
    } else if (point == '\n') {
      out += "\\n";
    } else if (point == '\t') {
      out += "\\t";
    } else if (point > 0xFFFF && is_unseen(point)) {
      escape(0xD800 + ((point - 0x10000) >> 10));
      escape(0xDC00 + ((point - 0x10000) & 0x3FF));
    } else if (is_control(point) || is_unseen(point)) {
      escape(point);
    } else {
      out += one;
    }
  }
  return out + '"';
}

std::string json_number(double number) {
  if (std::isnan(number)) return "\"nan\"";
  if (std::isinf(number)) return number > 0 ? "\"inf\"" : "\"-inf\"";
  if (number == 0 && std::signbit(number)) return "-0.0";  // "-0" would read back as the integer 0
  char digits[32];
  return {digits, std::to_chars(digits, digits + sizeof digits, number).ptr};
}

std::string json_real(double number) {
  const std::string text = json_number(number);
  return text.find_first_not_of("-0123456789") == std::string::npos ? text + ".0" : text;
}

}  // namespace assay::spec
