#include "spec/record/write.hpp"

#include "spec/record/fields.hpp"
#include "spec/text/json.hpp"

namespace assay::spec::record {
namespace {

class Writer {
 public:
  explicit Writer(std::string& out) : out_(out) {}

  void value(bool flag) { out_ += flag ? "true" : "false"; }
  void value(std::int64_t number) { out_ += std::to_string(number); }
  void value(double number) { out_ += json_number(number); }
  void value(const std::string& text) { out_ += json_string(text); }
  void value(EndReason reason) { out_ += json_string(kEndReasons[static_cast<int>(reason)]); }
  void value(const Value& setting) {
    // A number setting keeps its point, so that it reads back as a number and not as an integer.
    if (const auto* number = std::get_if<double>(&setting))
      out_ += toml_literal(*number);
    else
      std::visit([&](const auto& each) { value(each); }, setting);
  }
  void value(const Settings& settings) {
    out_ += '{';
    for (const auto& [name, setting] : settings) {
      if (&name != &settings.front().first) out_ += ',';
      out_ += json_string(name) + ':';
      value(setting);
    }
    out_ += '}';
  }
  template <class T>
  void value(const std::vector<T>& entries) {
    out_ += '[';
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (i) out_ += ',';
      value(entries[i]);
    }
    out_ += ']';
  }
  template <class T>
  requires requires(const T& object) {
    fields(object, [](const char*, const auto&) {});
  }
  void value(const T& object) {
    out_ += '{';
    members(object, true);
    out_ += '}';
  }

  template <class T>
  void members(const T& object, bool first) {
    fields(object, [&](const char* name, const auto& member) {
      if constexpr (is_optional<std::remove_cvref_t<decltype(member)>>::value) {
        if (member) this->member(name, *member, first);
      } else {
        this->member(name, member, first);
      }
    });
  }

 private:
  template <class T>
  void member(const char* name, const T& content, bool& first) {
    if (!first) out_ += ',';
    first = false;
    out_ += json_string(name) + ':';
    value(content);
  }

  std::string& out_;
};

}  // namespace

std::string to_json(const Event& event) {
  std::string out = "{\"event\":" + json_string(event_name(event));
  std::visit([&](const auto& each) { Writer(out).members(each, false); }, event);
  return out + '}';
}

}  // namespace assay::spec::record
