#pragma once
// A JSON text as a sequence of events, without building it in memory: whole documents of any size in blocks,
// and JSON lines in place. Numbers stay as they are written, so that their rounding is known.
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "spec/audit/readers/line_source.hpp"

namespace assay::spec::audit {

/// The bytes of a string that stays where it is.
class MemoryBytes {
 public:
  explicit MemoryBytes(std::string_view text) : at_(text.data()), end_(text.data() + text.size()) {}
  /// The next byte, or -1 at the end.
  int peek() const { return at_ == end_ ? -1 : static_cast<unsigned char>(*at_); }
  void next() { ++at_; }
  /// What is at hand without reading on; views of it live until the next `peek`.
  std::string_view rest() const { return {at_, static_cast<std::size_t>(end_ - at_)}; }
  /// Passes over bytes of `rest` that hold no line break.
  void skip(std::size_t bytes) { at_ += bytes; }

 private:
  const char *at_, *end_;
};

/// The bytes of a stream, in blocks; counts lines.
class BlockBytes {
 public:
  explicit BlockBytes(Blocks& blocks) : blocks_(blocks) { refill(); }
  int peek() {
    if (at_ == end_ && !refill()) return -1;
    return static_cast<unsigned char>(*at_);
  }
  void next() { line_ += *at_++ == '\n'; }
  std::string_view rest() const { return {at_, static_cast<std::size_t>(end_ - at_)}; }
  void skip(std::size_t bytes, std::int64_t line_breaks = 0) {
    at_ += bytes;
    line_ += line_breaks;
  }
  std::int64_t line() const { return line_; }
  /// How often the bytes at hand were replaced: views of them from before are dead.
  std::int64_t refills() const { return refills_; }

 private:
  bool refill() {
    blocks_.take(blocks_.rest().size() * (started_ ? 1 : 0));
    started_ = true;
    ++refills_;
    if (blocks_.rest().empty() && !blocks_.more()) return false;
    at_ = blocks_.rest().data();
    end_ = at_ + blocks_.rest().size();
    return true;
  }
  Blocks& blocks_;
  const char *at_ = nullptr, *end_ = nullptr;
  std::int64_t line_ = 1, refills_ = 0;
  bool started_ = false;
};

/// Calls `events`: begin_object(), end_object(), begin_array(), end_array(), key(text), text(text),
/// number(token), word(token) for true, false and null. Where it has a known_element(rest), that may take an
/// element of a list, which `rest` starts with, at one go: it then passes over its bytes and returns true.
/// Texts come unescaped, the first mebibyte of them; views live during the call. Besides RFC 8259, NaN,
/// Infinity and -Infinity are numbers, as Python writes them.
template <class Bytes, class Events>
class JsonScan {
 public:
  JsonScan(Bytes& bytes, Events& events) : bytes_(bytes), events_(events) {}

  /// One value. False when it is no JSON: `fault` says why.
  bool value() {
    while (true) {
      blanks();
      const int c = bytes_.peek();
      bool done = true;  // a whole value has ended
      if (c == '{' && depth_ > 0 && !object_[depth_ - 1] && known_element()) {
      } else if (c == '{' || c == '[') {
        bytes_.next();
        if (depth_ == deepest) return wrong("nested more than 256 deep");
        object_[depth_++] = c == '{';
        c == '{' ? events_.begin_object() : events_.begin_array();
        blanks();
        if (bytes_.peek() == (c == '{' ? '}' : ']')) {
          bytes_.next();
          close();
        } else {
          if (c == '{' && !key()) return false;
          done = false;
        }
      } else if (c == '"') {
        std::string_view said;
        if (!string(said)) return false;
        events_.text(said);
      } else if (c < 0) {
        return wrong("it ends in the middle");
      } else if (!plain()) {
        return false;
      }
      while (done) {
        if (depth_ == 0) return true;
        blanks();
        const int after = bytes_.peek();
        const bool in_object = object_[depth_ - 1];
        if (after < 0) return wrong("it ends in the middle");
        if (after == ',') {
          bytes_.next();
          if (in_object && !key()) return false;
          done = false;
        } else if (after == (in_object ? '}' : ']')) {
          bytes_.next();
          close();
        } else {
          return wrong("a comma or the end of a list or object is missing");
        }
      }
    }
  }
  void blanks() {
    int c;
    while ((c = bytes_.peek()) == ' ' || c == '\n' || c == '\r' || c == '\t') bytes_.next();
  }
  const char* fault() const { return fault_; }

 private:
  static constexpr int deepest = 256;
  static constexpr std::size_t longest_text = std::size_t{1} << 20, longest_number = 400;

  bool known_element() {
    if constexpr (requires { events_.known_element(bytes_.rest()); })
      return events_.known_element(bytes_.rest());
    else
      return false;
  }
  bool wrong(const char* why) {
    fault_ = why;
    return false;
  }
  void close() {
    --depth_;
    object_[depth_] ? events_.end_object() : events_.end_array();
  }
  bool key() {
    blanks();
    std::string_view name;
    if (bytes_.peek() < 0) return wrong("it ends in the middle");
    if (bytes_.peek() != '"') return wrong("a key in quotes is missing");
    if (!string(name)) return false;
    events_.key(name);
    blanks();
    if (bytes_.peek() != ':')
      return wrong(bytes_.peek() < 0 ? "it ends in the middle" : "a colon is missing");
    bytes_.next();
    return true;
  }

  bool string(std::string_view& out) {
    bytes_.next();
    // In place, unless it holds an escape or goes on in the next block.
    const std::string_view rest = bytes_.rest();
    const char *at = rest.data(), *const end = at + rest.size();
    while (at != end && inside_text[static_cast<unsigned char>(*at)]) ++at;
    if (at != end && *at == '"') {
      out = {rest.data(), static_cast<std::size_t>(at - rest.data())};
      bytes_.skip(out.size() + 1);
      return true;
    }
    token_.clear();
    while (true) {
      const int c = bytes_.peek();
      if (c < 0) return wrong("it ends in the middle");
      if (c < 0x20) return wrong("a control byte stands in a text");
      bytes_.next();
      if (c == '"') break;
      if (c == '\\') {
        if (!escape()) return false;
      } else if (token_.size() < longest_text) {
        token_ += static_cast<char>(c);
      }
    }
    out = token_;
    return true;
  }

  bool escape() {
    const int c = bytes_.peek();
    if (c < 0) return wrong("it ends in the middle");
    bytes_.next();
    constexpr std::string_view from = "\"\\/bfnrt", to = "\"\\/\b\f\n\r\t";
    if (c == 'u') {
      int code = 0;
      for (int i = 0; i < 4; ++i) {
        const int digit = bytes_.peek();
        const int at = digit >= '0' && digit <= '9'   ? digit - '0'
                       : digit >= 'a' && digit <= 'f' ? digit - 'a' + 10
                       : digit >= 'A' && digit <= 'F' ? digit - 'A' + 10
                                                      : -1;
        if (at < 0) return wrong("an escape has no four hexadecimal digits");
        code = code * 16 + at;
        bytes_.next();
      }
      if (token_.size() < longest_text) token_ += code < 0x80 ? static_cast<char>(code) : '?';
      return true;
    }
    const std::size_t at = from.find(static_cast<char>(c));
    if (at == std::string_view::npos) return wrong("an unknown escape stands in a text");
    if (token_.size() < longest_text) token_ += to[at];
    return true;
  }

  static bool plain_byte(int c) {
    return (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '+' || (c >= 'a' && c <= 'z') ||
           (c >= 'A' && c <= 'Z');
  }

  /// A number, or true, false, null, NaN, Infinity.
  bool plain() {
    const std::string_view rest = bytes_.rest();
    const std::size_t digits = numeric_length(rest);
    if (digits > 0 && digits < rest.size() && digits <= longest_number &&
        !plain_byte(static_cast<unsigned char>(rest[digits]))) {
      bytes_.skip(digits);
      events_.number(rest.substr(0, digits));
      return true;
    }
    std::size_t length = 0;
    while (length < rest.size() && plain_byte(static_cast<unsigned char>(rest[length]))) ++length;
    std::string_view token = rest.substr(0, length);
    if (length < rest.size()) {
      bytes_.skip(length);
    } else {  // perhaps it goes on in the next block
      token_.clear();
      for (int c = bytes_.peek(); plain_byte(c) && token_.size() <= longest_number; c = bytes_.peek()) {
        token_ += static_cast<char>(c);
        bytes_.next();
      }
      token = token_;
    }
    if (token.size() > longest_number) return wrong("a number has more than 400 digits");
    if ((!token.empty() && numeric_length(token) == token.size()) || token == "NaN" || token == "Infinity" ||
        token == "-Infinity") {
      events_.number(token);
      return true;
    }
    if (token == "true" || token == "false" || token == "null") {
      events_.word(token);
      return true;
    }
    return wrong(token.empty() ? "a value is missing" : "a value is no number, text or word of JSON");
  }
  /// Bytes of the number that `text` starts with, 0 when there is none.
  static std::size_t numeric_length(std::string_view text) {
    const char *at = text.data(), *const end = at + text.size();
    const auto digits = [&] {
      const char* const from = at;
      while (at != end && *at >= '0' && *at <= '9') ++at;
      return at != from;
    };
    if (at != end && *at == '-') ++at;
    if (!digits()) return 0;
    if (at != end && *at == '.' && (++at, !digits())) return 0;
    if (at != end && (*at == 'e' || *at == 'E')) {
      ++at;
      if (at != end && (*at == '+' || *at == '-')) ++at;
      if (!digits()) return 0;
    }
    return static_cast<std::size_t>(at - text.data());
  }

  /// Bytes that stand for themselves in a text.
  static constexpr std::array<bool, 256> inside_text = [] {
    std::array<bool, 256> inside{};
    for (int c = 0x20; c < 256; ++c) inside[static_cast<std::size_t>(c)] = c != '"' && c != '\\';
    return inside;
  }();

  Bytes& bytes_;
  Events& events_;
  bool object_[deepest] = {};
  int depth_ = 0;
  std::string token_;
  const char* fault_ = "";
};

}  // namespace assay::spec::audit
