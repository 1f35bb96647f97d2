#pragma once
// Models: described, found by name or file, their parameters counted and listed.
//
// Promised, in namespace assay:
//   Count, spec::ModelSpec, spec::Family, spec::Norm, spec::Mlp, spec::Positions, spec::RopeScaling
//   spec::Experts, spec::LatentAttention, spec::check, spec::find_model, spec::model_names
//   spec::model_from_toml, spec::model_from_hugging_face, spec::to_toml, spec::to_string
//   spec::ParameterCounts, spec::parameter_counts, spec::parameter_count, spec::active_parameter_count
//   spec::Parameter, spec::Role, spec::Inventory, spec::inventory
//   spec::untrainable_feature, spec::require_trainable
//
// Units: counts are exact integers (Count, 128 bits), lengths are tokens, offsets and sizes elements.
// Errors: SpecError model_c1.., inventory_c1..; UserError (usage) for a name, file or key that is not known.
#include "spec/model/inventory.hpp"
#include "spec/model/model_spec.hpp"
#include "spec/model/trainable.hpp"
