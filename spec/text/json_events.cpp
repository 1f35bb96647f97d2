// The one file of spec and impl that compiles nlohmann-json (ci/check_layers.py): each costs seconds.
#include "spec/text/json_events.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "spec/text/utf8.hpp"

namespace assay::spec {
namespace {

/// Line and column, both from 1, of `byte`, which counts from 1.
document::Position position_of(std::string_view text, std::size_t byte) {
  const std::string_view before = text.substr(0, byte > 0 ? byte - 1 : 0);
  const auto lines = std::count(before.begin(), before.end(), '\n');
  return {static_cast<std::uint32_t>(lines + 1),
          static_cast<std::uint32_t>(before.size() - (before.rfind('\n') + 1) + 1)};
}

/// "[json.exception.parse_error.101] parse error at line 1, column 5: syntax error ..." without its head,
/// which the fault holds already, and without endless excerpts.
std::string reason(std::string_view message) {
  if (const auto head = message.find("] "); head != message.npos) message.remove_prefix(head + 2);
  if (const auto head = message.find(": "); message.starts_with("parse error") && head != message.npos)
    message.remove_prefix(head + 2);
  constexpr std::size_t longest = 120;
  return valid_utf8(message.substr(0, longest)) + (message.size() > longest ? "..." : "");
}

/// nlohmann's names for the events.
class Adapter {
 public:
  Adapter(std::string_view text, JsonEvents& events) : text_(text), events_(events) {}

  bool null() { return events_.null(); }
  bool boolean(bool value) { return events_.boolean(value); }
  bool number_integer(std::int64_t number) { return events_.negative(number); }
  bool number_unsigned(std::uint64_t number) { return events_.natural(number); }
  bool number_float(double number, const std::string&) { return events_.real(number); }
  bool string(std::string& value) { return events_.text(value); }
  bool binary(std::vector<std::uint8_t>&) { return false; }  // not in JSON
  bool start_object(std::size_t) { return events_.begin_object(); }
  bool key(std::string& key) { return events_.key(key); }
  bool end_object() { return events_.end_object(); }
  bool start_array(std::size_t) { return events_.begin_list(); }
  bool end_array() { return events_.end_list(); }
  bool parse_error(std::size_t byte, const std::string&, const nlohmann::json::exception& error) {
    fault = {reason(error.what()), byte, position_of(text_, byte)};
    return false;
  }

  std::optional<document::Fault> fault;

 private:
  std::string_view text_;
  JsonEvents& events_;
};

}  // namespace

std::optional<document::Fault> read_json_events(std::string_view text, JsonEvents& events) {
  // nlohmann takes a NUL byte for the end of its input.
  if (const auto nul = text.find('\0'); nul != text.npos)
    return document::Fault{"a NUL byte", nul + 1, position_of(text, nul + 1)};
  Adapter adapter(text, events);
  nlohmann::json::sax_parse(text.data(), text.data() + text.size(), &adapter);
  return adapter.fault;
}

}  // namespace assay::spec
