#pragma once
// What differs between two models, field by field.
#include <string>
#include <vector>

#include "spec/model/model_spec.hpp"
#include "spec/text/value.hpp"

namespace assay::spec {

struct ModelDifference {
  std::string field;  ///< as model files have it: "rope_theta", "experts.active"
  Value now, before;  ///< of a table that only one of them has: "none"
  bool operator==(const ModelDifference&) const = default;
};

/// In the order of the fields. What a model is called makes no difference.
std::vector<ModelDifference> differences(const ModelSpec& now, const ModelSpec& before);

/// Whether both have the same parameters: names and shapes.
bool same_parameters(const ModelSpec& a, const ModelSpec& b);

}  // namespace assay::spec
