#include "spec/ops/adamw/adamw.hpp"

#include <cmath>
#include <limits>
#include <string>

#include "spec/error.hpp"
#include "spec/ops/adamw/adamw_rounding.hpp"

namespace assay::spec::adamw {

void check(const Settings& s) {
  // adamw_c2
  require(s.step >= 1, "adamw_c2", [&] { return "step=" + std::to_string(s.step) + ", steps count from 1"; });
  // adamw_c3
  require(s.beta1 >= 0 && s.beta1 < 1 && s.beta2 >= 0 && s.beta2 < 1, "adamw_c3",
          [&] { return "beta1=" + std::to_string(s.beta1) + ", beta2=" + std::to_string(s.beta2); });
  // adamw_c4
  require(std::isfinite(s.eps) && s.eps > 0, "adamw_c4", [&] { return "eps=" + std::to_string(s.eps); });
  // adamw_c5
  require(std::isfinite(s.learning_rate) && s.learning_rate >= 0, "adamw_c5",
          [&] { return "learning_rate=" + std::to_string(s.learning_rate); });
  // adamw_c6
  require(std::isfinite(s.weight_decay) && s.weight_decay >= 0, "adamw_c6",
          [&] { return "weight_decay=" + std::to_string(s.weight_decay); });
}

void check_entries(const char* name, std::int64_t entries, std::int64_t parameter_entries) {
  // adamw_c1
  require(entries == parameter_entries, "adamw_c1", [&] {
    return std::string(name) + " has " + std::to_string(entries) + " entries, the parameter " +
           std::to_string(parameter_entries);
  });
}

Scalars scalars(const Settings& s) {
  check(s);
  const double t = static_cast<double>(s.step);
  return {.kept = 1 - s.learning_rate * s.weight_decay,
          .step_size = s.learning_rate / (1 - std::pow(s.beta1, t)),
          .root_correction2 = std::sqrt(1 - std::pow(s.beta2, t))};
}

random::Stream rounding_stream(std::uint64_t seed, std::int64_t step) {
  // adamw_c7
  require(step >= 1 && step <= std::numeric_limits<std::uint32_t>::max(), "adamw_c7",
          [&] { return "step=" + std::to_string(step) + ", bf16 states are rounded at steps in [1, 2^32)"; });
  return rounding_stream_of(seed, static_cast<std::uint32_t>(step));
}

// Decay 1; m: g - m, * (1 - beta1), + 3; v: beta2 v, g^2, * (1 - beta2), + 4; sqrt, / correction, + eps 3;
// step size * m, / denominator, - 3.
Flops update_flops(std::int64_t entries) { return {0, 14 * Count(entries)}; }

Count update_bytes(std::int64_t entries, std::int64_t state, std::int64_t gradient, std::int64_t working) {
  return Count(entries) * (6 * Count(state) + gradient + working);
}

}  // namespace assay::spec::adamw
