#include "spec/record/event.hpp"

#include <array>

#include "spec/error.hpp"
#include "spec/record/fields.hpp"

namespace assay::spec::record {
namespace {

/// Appends the names of what `member` holds; a leaf is its own name.
struct Names {
  std::vector<std::string>& out;

  template <class T>
  void add(const std::string& path, const T& member) {
    if constexpr (is_optional<T>::value) {
      add(path, typename T::value_type{});
    } else if constexpr (requires { fields(member, *this); }) {
      fields(member, [&](const char* name, const auto& inner) { add(path + "." + name, inner); });
    } else {
      out.push_back(path);
    }
  }
  template <class T>
  void add(const std::string& path, const std::vector<T>&) {
    if constexpr (requires(const T& entry) { fields(entry, *this); })
      add(path + "[]", T{});
    else
      out.push_back(path);
  }
  template <class T>
  void operator()(const char*, const T&) {}
};

/// In the order of Event.
constexpr std::array<const char*, std::variant_size_v<Event>> names = {
    "run_start", "step",   "warning",    "checkpoint", "resume",  "samples",
    "run_end",   "memory", "validation", "weights",    "skipped", "profile"};
static_assert(names.back() != nullptr, "an event has no name");

template <std::size_t I = 0>
Event default_event(std::size_t index) {
  if constexpr (I < std::variant_size_v<Event>) {
    return index == I ? Event(std::in_place_index<I>) : default_event<I + 1>(index);
  } else {
    return {};
  }
}

}  // namespace

const std::vector<std::string>& event_names() {
  static const std::vector<std::string> all(names.begin(), names.end());
  return all;
}

std::string event_name(const Event& event) { return names.at(event.index()); }

std::vector<std::string> field_names(const std::string& event) {
  for (std::size_t i = 0; i < event_names().size(); ++i) {
    if (event_names()[i] != event) continue;
    std::vector<std::string> out;
    std::visit(
        [&](const auto& each) {
          fields(each, [&](const char* name, const auto& member) { Names{out}.add(name, member); });
        },
        default_event(i));
    return out;
  }
  // record_c1
  throw SpecError("record_c1", "unknown event \"" + event + "\"");
}

}  // namespace assay::spec::record
