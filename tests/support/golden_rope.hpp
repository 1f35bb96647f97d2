#pragma once
// The scaling of rotary embeddings that a golden file of an op states.
#include <optional>

#include "spec/model/model_spec.hpp"
#include "tests/support/golden.hpp"

namespace assay::tests {

/// None where the file states no factor; yarn where it states beta_fast; what it does not state is at its
/// default.
inline std::optional<spec::RopeScaling> rope_scaling(const GoldenFile& golden) {
  if (!golden.scalars.contains("factor")) return std::nullopt;
  spec::RopeScaling s;
  if (golden.scalars.contains("beta_fast")) s.kind = spec::RopeScalingKind::yarn;
  const auto take = [&](const char* name, double& value) {
    if (golden.scalars.contains(name)) value = golden.scalar(name);
  };
  take("factor", s.factor);
  take("low_freq_factor", s.low_freq_factor);
  take("high_freq_factor", s.high_freq_factor);
  take("beta_fast", s.beta_fast);
  take("beta_slow", s.beta_slow);
  take("mscale", s.mscale);
  take("mscale_all_dim", s.mscale_all_dim);
  take("attention_factor", s.attention_factor);
  s.original_context = static_cast<std::int64_t>(golden.scalar("original_context"));
  return s;
}

}  // namespace assay::tests
