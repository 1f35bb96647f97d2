#pragma once
// Settings, step scalars, FLOPs and bytes of adamw. Equation, source and worked example:
// spec/ops/adamw/adamw.md.
#include <cstdint>

#include "spec/count.hpp"

namespace assay::spec::adamw {

struct Settings {
  double learning_rate = 0;
  double beta1 = 0.9, beta2 = 0.95;
  double eps = 1e-8;
  double weight_decay = 0;  ///< decoupled: the parameter loses learning_rate * weight_decay of itself
  std::int64_t step = 1;    ///< counts from 1
};

/// Errors: SpecError adamw_c2 (step < 1), adamw_c3 (a beta outside [0, 1)), adamw_c4 (eps not > 0 and
/// finite), adamw_c5 (learning rate not >= 0 and finite), adamw_c6 (weight decay not >= 0 and finite).
void check(const Settings& settings);
/// Entries of a tensor called `name` against those of the parameter. Errors: SpecError adamw_c1.
void check_entries(const char* name, std::int64_t entries, std::int64_t parameter_entries);

/// What all entries of a step share.
struct Scalars {
  double kept;              ///< 1 - learning_rate * weight_decay
  double step_size;         ///< learning_rate / (1 - beta1^t)
  double root_correction2;  ///< sqrt(1 - beta2^t)
};
/// Errors: as `check`.
Scalars scalars(const Settings& settings);

Flops update_flops(std::int64_t entries);  ///< vector: 14 * entries

/// Compulsory traffic. Unit: [B]. `state` = bytes of an entry of parameter and moments, `gradient` = of the
/// gradient, `working` = of the rounded working copy that is written (0: there is none).
Count update_bytes(std::int64_t entries, std::int64_t state, std::int64_t gradient, std::int64_t working);

}  // namespace assay::spec::adamw
