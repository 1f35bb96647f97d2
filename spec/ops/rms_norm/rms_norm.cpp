#include "spec/ops/rms_norm/rms_norm.hpp"

#include <cmath>
#include <string>

#include "spec/error.hpp"

namespace assay::spec::rms_norm {

void check(const Shape& shape, std::int64_t gain_entries, double eps) {
  // rms_norm_c3
  require(shape.D >= 1 && shape.N >= 0, "rms_norm_c3",
          [&] { return "N=" + std::to_string(shape.N) + ", D=" + std::to_string(shape.D); });
  // rms_norm_c1
  require(gain_entries == shape.D, "rms_norm_c1", [&] {
    return "gain has " + std::to_string(gain_entries) + " entries, x has D=" + std::to_string(shape.D);
  });
  // rms_norm_c2
  require(std::isfinite(eps) && eps > 0, "rms_norm_c2", [&] { return "eps=" + std::to_string(eps); });
}

// Per row: squares and their sum 2D; mean, + eps, sqrt, reciprocal 4; x * rstd * gain 2D.
Flops forward_flops(const Shape& s) { return {0, Count(s.N) * (4 * Count(s.D) + 4)}; }

// Per row: xhat, dgain, projection (1 + 2 + 3)D; mean 1; xhat again and dx (1 + 4)D.
Flops backward_flops(const Shape& s) { return {0, Count(s.N) * (11 * Count(s.D) + 1)}; }

Count forward_bytes(const Shape& s, std::int64_t element, std::int64_t statistic) {
  return 2 * Count(s.N) * s.D * element + (Count(s.N) + s.D) * statistic;
}

Count backward_bytes(const Shape& s, std::int64_t element, std::int64_t statistic) {
  return 3 * Count(s.N) * s.D * element + (Count(s.N) + 2 * Count(s.D)) * statistic;
}

Flops sum_flops(const Shape& s) { return {0, Count(s.N) * s.D}; }

Count sum_bytes(const Shape& s, std::int64_t element) { return 2 * Count(s.N) * s.D * element; }

}  // namespace assay::spec::rms_norm
