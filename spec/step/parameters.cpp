#include "spec/step/parameters.hpp"

namespace assay::spec::step {

FieldRange field_range(const Inventory& inventory, const std::string& first, const std::string& last) {
  FieldRange range;
  for (const Parameter& parameter : inventory.parameters) {
    if (parameter.name == first) range.first = &parameter;
    if (range.first) range.rows += parameter.shape.front();
    if (range.first && parameter.name == last) return range;
  }
  if (range.first) (void)inventory.at(last);  // throws: it is not there, or not behind `first`
  return {};
}

}  // namespace assay::spec::step
