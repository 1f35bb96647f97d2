#include "tests/support/program/resource_groups.hpp"

#include <algorithm>
#include <stdexcept>
#include <string_view>

namespace assay::tests {

namespace {

/// "id:0,slots:1;id:1,slots:1" adds ",0,1".
void add_ids(std::string_view allocation, std::string& ids) {
  while (!allocation.empty()) {
    const auto end = std::min(allocation.find(';'), allocation.size());
    const std::string_view entry = allocation.substr(0, end);
    const auto comma = entry.find(",slots:");
    if (!entry.starts_with("id:") || comma == std::string_view::npos || comma == 3)
      throw std::invalid_argument("CTest allocates no GPU by " + std::string(entry));
    ids += (ids.empty() ? "" : ",") + std::string(entry.substr(3, comma - 3));
    allocation.remove_prefix(std::min(end + 1, allocation.size()));
  }
}

}  // namespace

std::string visible_gpus(const Environment& environment) {
  const char* count = environment("CTEST_RESOURCE_GROUP_COUNT");
  if (!count) return {};
  const int groups = std::stoi(count);
  std::string ids;
  for (int group = 0; group < groups; ++group)
    if (const char* gpus = environment("CTEST_RESOURCE_GROUP_" + std::to_string(group) + "_GPUS"))
      add_ids(gpus, ids);
  return ids;
}

}  // namespace assay::tests
