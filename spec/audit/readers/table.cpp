#include "spec/audit/readers/table.hpp"

#include <algorithm>
#include <vector>

#include "spec/audit/readers/csv_table.hpp"
#include "spec/audit/readers/json_lines.hpp"

namespace assay::spec::audit {

Format mapped_format() {
  Format format;
  format.name = "mapped";
  return format;
}

std::unique_ptr<LineReader> make_table(const Mapping& mapping, bool json) {
  return json ? make_json_lines(mapping) : make_csv(mapping);
}

bool table_explains_itself(std::string_view first, const Mapping& mapping, bool json) {
  if (json) {
    return (first.find("\"step\"") != std::string_view::npos ||
            first.find("\"loss\"") != std::string_view::npos) &&
           first.starts_with('{');
  }
  const std::vector<std::string_view> names = cells(first, separator_of(first));
  return names.size() > 1 && std::count_if(names.begin(), names.end(),
                                           [&](std::string_view cell) { return mapping.knows(cell); }) >= 2;
}

}  // namespace assay::spec::audit
