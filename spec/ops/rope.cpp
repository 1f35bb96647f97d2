#include "spec/ops/rope.hpp"

#include <cmath>
#include <numbers>
#include <string>

#include "spec/error.hpp"

namespace assay::spec::rope {

namespace {
void check_head(std::int64_t E) {
  // rope_c1
  require(E >= 2 && E % 2 == 0, "rope_c1",
          [&] { return "E=" + std::to_string(E) + " is not even and >= 2"; });
}

void check(const RopeScaling& s) {
  const bool holds = std::isfinite(s.factor) && s.factor >= 1 && s.low_freq_factor > 0 &&
                     s.high_freq_factor > s.low_freq_factor && std::isfinite(s.high_freq_factor) &&
                     s.original_context >= 1;
  // rope_c4
  require(holds, "rope_c4", [&] {
    return "factor=" + std::to_string(s.factor) + ", low_freq_factor=" + std::to_string(s.low_freq_factor) +
           ", high_freq_factor=" + std::to_string(s.high_freq_factor) +
           ", original_context=" + std::to_string(s.original_context);
  });
}

double scaled(double frequency, const RopeScaling& s) {
  const double turns = static_cast<double>(s.original_context) * frequency / (2 * std::numbers::pi);
  if (turns > s.high_freq_factor) return frequency;
  if (turns < s.low_freq_factor) return frequency / s.factor;
  const double kept = (turns - s.low_freq_factor) / (s.high_freq_factor - s.low_freq_factor);
  return kept * frequency + (1 - kept) * frequency / s.factor;
}
}  // namespace

std::vector<double> inverse_frequencies(std::int64_t E, double theta,
                                        const std::optional<RopeScaling>& scaling) {
  check_head(E);
  // rope_c2
  require(std::isfinite(theta) && theta > 0, "rope_c2", [&] { return "theta=" + std::to_string(theta); });
  if (scaling) check(*scaling);

  std::vector<double> frequencies;
  for (std::int64_t e = 0; e < E / 2; ++e) {
    const double frequency = std::pow(theta, -2.0 * static_cast<double>(e) / static_cast<double>(E));
    frequencies.push_back(scaling ? scaled(frequency, *scaling) : frequency);
  }
  return frequencies;
}

void check(const Shape& shape, std::span<const std::int64_t> positions, std::int64_t frequencies) {
  check_head(shape.E);
  // rope_c1
  require(shape.B >= 0 && shape.T >= 0 && shape.H >= 0, "rope_c1", [&] {
    return "B=" + std::to_string(shape.B) + ", T=" + std::to_string(shape.T) +
           ", H=" + std::to_string(shape.H);
  });
  // rope_c3
  require(static_cast<std::int64_t>(positions.size()) == shape.B * shape.T, "rope_c3", [&] {
    return std::to_string(positions.size()) + " positions, x has B*T=" + std::to_string(shape.B * shape.T) +
           " tokens";
  });
  for (std::size_t n = 0; n < positions.size(); ++n) {
    require(positions[n] >= 0, "rope_c3",
            [&] { return "position " + std::to_string(positions[n]) + " at " + std::to_string(n); });
  }
  // rope_c5
  require(frequencies == shape.E / 2, "rope_c5", [&] {
    return std::to_string(frequencies) + " inverse frequencies, heads of E=" + std::to_string(shape.E);
  });
}

// Per pair of entries: 4 products, 2 additions.
Flops forward_flops(const Shape& s) { return {0, 3 * Count(s.B) * s.T * s.H * s.E}; }

Flops backward_flops(const Shape& s) { return forward_flops(s); }

Count forward_bytes(const Shape& s, std::int64_t element, std::int64_t table) {
  return 2 * Count(s.B) * s.T * s.H * s.E * element + Count(s.B) * s.T * s.E * table;
}

Count backward_bytes(const Shape& s, std::int64_t element, std::int64_t table) {
  return forward_bytes(s, element, table);
}

}  // namespace assay::spec::rope
