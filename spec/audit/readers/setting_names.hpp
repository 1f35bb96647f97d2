#pragma once
// The words that a trainer has for settings, and how it prints them.
#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string_view>

#include "spec/audit/printed.hpp"
#include "spec/audit/run_record.hpp"

namespace assay::spec::audit {

struct SettingName {
  std::string_view name;
  Setting setting;
  Kind kind = Kind::counted;
  double unit = 1;
};

/// The setting of that name; nullptr where there is none.
template <std::size_t n>
const SettingName* setting_named(const SettingName (&names)[n], std::string_view name) {
  const auto found = std::find_if(std::begin(names), std::end(names),
                                  [&](const SettingName& one) { return one.name == name; });
  return found == std::end(names) ? nullptr : found;
}

}  // namespace assay::spec::audit
