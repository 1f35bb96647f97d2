#include "spec/claims/expression.hpp"

#include <charconv>
#include <utility>

#include "spec/text/amount.hpp"

namespace assay::spec::claims {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name(char c) { return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

class Reader {
 public:
  Reader(std::string_view text, const Names& names) : text_(text), names_(names) {}

  Interval whole() {
    const Interval value = sum();
    if (peek() != '\0') fail("an operator or the end");
    return value;
  }

 private:
  [[noreturn]] void fail(const std::string& wanted) const {
    throw SpecError("expression_c1", "\"" + std::string(text_) + "\": expected " + wanted + " at \"" +
                                         std::string(text_.substr(at_)) + "\"");
  }

  char peek() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool take(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }

  Interval sum() {
    Interval value = product();
    for (;;) {
      if (take('+'))
        value = value + product();
      else if (take('-'))
        value = value - product();
      else
        return value;
    }
  }

  Interval product() {
    Interval value = unary();
    for (;;) {
      if (take('*'))
        value = value * unary();
      else if (take('/'))
        value = value / unary();
      else
        return value;
    }
  }

  Interval unary() {
    if (take('-')) return exact_interval(0) - unary();
    if (take('(')) {
      if (++depth_ > 64) fail("fewer than 65 nested parentheses");
      const Interval value = sum();
      if (!take(')')) fail("\")\"");
      --depth_;
      return value;
    }
    if (is_digit(peek())) return number();
    if (is_name(peek())) return named();
    fail("a number, a name or \"(\"");
  }

  Interval number() {
    std::string digits;
    while (at_ < text_.size() && (is_digit(text_[at_]) || text_[at_] == '_' || text_[at_] == '.')) {
      if (text_[at_] != '_') digits += text_[at_];
      ++at_;
    }
    if (at_ < text_.size() && text_[at_] == 'e') {
      digits += text_[at_++];
      if (at_ < text_.size() && (text_[at_] == '-' || text_[at_] == '+')) {
        if (text_[at_] == '-') digits += '-';
        ++at_;
      }
      while (at_ < text_.size() && is_digit(text_[at_])) digits += text_[at_++];
    }
    double value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc() || end != digits.data() + digits.size()) fail("a number before this position");
    return exact_interval(value * unit());
  }

  double unit() {
    if (at_ >= text_.size() || !is_name(text_[at_])) return 1;
    if (at_ + 1 < text_.size() && is_name(text_[at_ + 1])) fail("a unit of one letter");
    const auto factor = magnitude(text_[at_]);
    if (!factor) fail("one of k M G B T");
    ++at_;
    return *factor;
  }

  Interval named() {
    const std::size_t from = at_;
    while (at_ < text_.size() && is_name(text_[at_])) ++at_;
    const std::string name(text_.substr(from, at_ - from));
    if (!take('(')) return names_.value(name);
    const auto function = names_.functions.find(name);
    if (function == names_.functions.end()) {
      std::string known;
      for (const auto& [other, call] : names_.functions) known += (known.empty() ? "" : ", ") + other;
      throw SpecError("expression_c2", "no function \"" + name + "\"; there are " + known);
    }
    return function->second(arguments());
  }

  std::vector<Argument> arguments() {
    std::vector<Argument> list;
    if (take(')')) return list;
    do {
      if (take('\'')) {
        const std::size_t end = text_.find('\'', at_);
        if (end == std::string_view::npos) fail("a closing \"'\"");
        list.emplace_back(std::string(text_.substr(at_, end - at_)));
        at_ = end + 1;
      } else {
        list.emplace_back(sum());
      }
    } while (take(','));
    if (!take(')')) fail("\",\" or \")\"");
    return list;
  }

  std::string_view text_;
  const Names& names_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

Interval evaluate(std::string_view expression, const Names& names) {
  return Reader(expression, names).whole();
}

}  // namespace assay::spec::claims
