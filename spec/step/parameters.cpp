#include "spec/step/parameters.hpp"

#include <string_view>

#include "spec/error.hpp"

namespace assay::spec::step {

namespace {
bool is(const Parameter& parameter, const Which& which) {
  if (!which.name) return parameter.role == which.role;
  const std::string_view name = which.name, full = parameter.name;
  return full.ends_with(name) && (full.size() == name.size() || full[full.size() - name.size() - 1] == '.');
}
}  // namespace

FieldRange field_range(const Inventory& inventory, std::int64_t block, const Which& first,
                       const Which& last) {
  FieldRange range;
  std::int64_t rows = 0;
  for (const Parameter& parameter : inventory.parameters_of(block)) {
    if (!range.first && is(parameter, first)) range.first = &parameter;
    if (!range.first) continue;
    rows += parameter.shape.front();
    if (is(parameter, last)) range.rows = rows;
  }
  // inventory_c1
  require(!range.first || range.rows > 0, "inventory_c1", [&] {
    return "behind " + range.first->name + " of block " + std::to_string(block) + " stands no " +
           (last.name ? last.name : "parameter of its group");
  });
  return range;
}

}  // namespace assay::spec::step
