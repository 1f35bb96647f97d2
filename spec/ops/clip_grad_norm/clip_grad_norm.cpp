#include "spec/ops/clip_grad_norm/clip_grad_norm.hpp"

#include <algorithm>
#include <cmath>

#include "spec/error.hpp"

namespace assay::spec::clip_grad_norm {

void check_finite(double sum_of_squares, const std::string& tensor) {
  // clip_grad_norm_c2
  require(std::isfinite(sum_of_squares), "clip_grad_norm_c2", [&] {
    return "the sum of squares is " + std::to_string(sum_of_squares) + " from " + tensor +
           " on; nothing was clipped";
  });
}

double coefficient(double norm, double max_norm) {
  // clip_grad_norm_c1
  require(std::isfinite(max_norm) && max_norm > 0, "clip_grad_norm_c1",
          [&] { return "max_norm=" + std::to_string(max_norm); });
  // clip_grad_norm_c2
  require(std::isfinite(norm), "clip_grad_norm_c2", [&] { return "norm=" + std::to_string(norm); });
  return std::min(1.0, max_norm / (norm + 1e-6));
}

// Square and sum 2 per entry, one root, one product per entry.
Flops clip_flops(std::int64_t entries) { return {0, 3 * Count(entries) + 1}; }

Count norm_bytes(std::int64_t entries, std::int64_t gradient) { return Count(entries) * gradient; }

Count scale_bytes(std::int64_t entries, std::int64_t gradient) { return 2 * Count(entries) * gradient; }

}  // namespace assay::spec::clip_grad_norm
