// Where each value of a JSON text stands. The parser does not report it, so this walks the text along its
// tree.
#include <algorithm>

#include "spec/text/json.hpp"

namespace assay::spec {
namespace {

using document::Node;
using document::Position;

class PositionWalk {
 public:
  explicit PositionWalk(std::string_view text) : text_(text) {}

  void value(Node& node) {
    node.position = next();
    if (auto* object = std::get_if<Node::Object>(&node.content)) {
      ++at_;
      for (document::Entry& entry : *object) {
        entry.position = next();
        text();
        next();
        ++at_;  // the colon
        value(entry.value);
        next();
        ++at_;  // a comma, or the end
      }
      if (object->empty()) close();
    } else if (auto* list = std::get_if<Node::List>(&node.content)) {
      ++at_;
      for (Node& entry : *list) {
        value(entry);
        next();
        ++at_;
      }
      if (list->empty()) close();
    } else if (std::holds_alternative<std::string>(node.content)) {
      text();
    } else {
      at_ = std::min(text_.find_first_of(",]} \t\r\n", at_), text_.size());
    }
  }

 private:
  /// Skips blanks. Line breaks stand nowhere else in valid JSON.
  Position next() {
    for (; at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos;
         ++at_)
      if (text_[at_] == '\n') ++line_, line_start_ = at_ + 1;
    return {line_, static_cast<std::uint32_t>(at_ - line_start_ + 1)};
  }
  void close() {
    next();
    ++at_;
  }
  void text() {
    for (++at_; at_ < text_.size() && text_[at_] != '"'; ++at_)
      if (text_[at_] == '\\') ++at_;
    ++at_;
  }

  std::string_view text_;
  std::size_t at_ = 0, line_start_ = 0;
  std::uint32_t line_ = 1;
};

}  // namespace

void locate_values(std::string_view text, document::Node& root) {
  PositionWalk(text).value(root);
  root.position = {};  // what is missing from the whole text has no position in it
}

}  // namespace assay::spec
