#pragma once
// Members of JSON logs by name, and what they are.
#include <algorithm>
#include <iterator>
#include <string_view>

#include "spec/audit/run_record.hpp"

namespace assay::spec::audit {

struct KnownSetting {
  std::string_view path;
  Setting setting;
  double unit = 1;
};

struct KnownField {
  std::string_view path;
  Field field;
  double unit = 1;
};

/// The one of that path; nullptr where there is none.
template <class Known, std::size_t n>
const Known* find_known(const Known (&all)[n], std::string_view path) {
  const auto found =
      std::find_if(std::begin(all), std::end(all), [&](const Known& k) { return k.path == path; });
  return found == std::end(all) ? nullptr : found;
}

}  // namespace assay::spec::audit
