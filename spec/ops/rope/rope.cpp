#include "spec/ops/rope/rope.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "spec/error.hpp"

namespace assay::spec::rope {

namespace {
void check_head(std::int64_t E) {
  // rope_c1
  require(E >= 2 && E % 2 == 0, "rope_c1",
          [&] { return "E=" + std::to_string(E) + " is not even and >= 2"; });
}

double llama3(double frequency, const RopeScaling& s) {
  const double turns = static_cast<double>(s.original_context) * frequency / (2 * std::numbers::pi);
  if (turns > s.high_freq_factor) return frequency;
  if (turns < s.low_freq_factor) return frequency / s.factor;
  const double kept = (turns - s.low_freq_factor) / (s.high_freq_factor - s.low_freq_factor);
  return kept * frequency + (1 - kept) * frequency / s.factor;
}

/// The pair, a real number, that makes `turns` turns within the original context.
double pair_of(double turns, double E, double theta, const RopeScaling& s) {
  return E * std::log(static_cast<double>(s.original_context) / (2 * std::numbers::pi * turns)) /
         (2 * std::log(theta));
}

/// Yarn's ramp over the pairs: up to `first` none is slowed, from `last` on all are.
struct Ramp {
  double first, last;
};
Ramp ramp_of(double E, double theta, const RopeScaling& s) {
  return {std::max(std::floor(pair_of(s.beta_fast, E, theta, s)), 0.0),
          std::min(std::ceil(pair_of(s.beta_slow, E, theta, s)), E - 1)};
}

double yarn(double frequency, double e, double E, double theta, const RopeScaling& s) {
  const Ramp ramp = ramp_of(E, theta, s);
  const double width = ramp.first == ramp.last ? 0.001 : ramp.last - ramp.first;
  const double slowed = std::clamp((e - ramp.first) / width, 0.0, 1.0);
  return slowed * frequency / s.factor + (1 - slowed) * frequency;
}

bool finite_from(double least, double value) { return std::isfinite(value) && value >= least; }
}  // namespace

std::string fault_of(const RopeScaling& s, std::int64_t E, double theta) {
  const auto value = [](const char* name, double of) { return std::string(name) + std::to_string(of); };
  const std::string shared = value("factor=", s.factor),
                    context = ", original_context=" + std::to_string(s.original_context);
  const bool possible = finite_from(1, s.factor) && s.original_context >= 1;
  if (s.kind == RopeScalingKind::llama3) {
    if (possible && s.low_freq_factor > 0 && s.high_freq_factor > s.low_freq_factor &&
        std::isfinite(s.high_freq_factor))
      return "";
    return shared + value(", low_freq_factor=", s.low_freq_factor) +
           value(", high_freq_factor=", s.high_freq_factor) + context;
  }
  if (possible && theta > 1 && s.beta_slow > 0 && s.beta_fast > s.beta_slow && std::isfinite(s.beta_fast) &&
      finite_from(0, s.mscale) && finite_from(0, s.mscale_all_dim) && finite_from(0, s.attention_factor)) {
    const Ramp ramp = ramp_of(static_cast<double>(E), theta, s);
    if (ramp.first <= ramp.last) return "";
  }
  return shared + value(", beta_fast=", s.beta_fast) + value(", beta_slow=", s.beta_slow) +
         value(", mscale=", s.mscale) + value(", mscale_all_dim=", s.mscale_all_dim) +
         value(", attention_factor=", s.attention_factor) + context + value(" under rope_theta=", theta) +
         " with " + std::to_string(E) + " turned entries";
}

std::vector<double> inverse_frequencies(std::int64_t E, double theta,
                                        const std::optional<RopeScaling>& scaling) {
  check_head(E);
  // rope_c2
  require(std::isfinite(theta) && theta > 0, "rope_c2", [&] { return "theta=" + std::to_string(theta); });
  const std::string fault = scaling ? fault_of(*scaling, E, theta) : "";
  // rope_c4
  require(fault.empty(), "rope_c4", [&] { return fault; });

  std::vector<double> frequencies;
  for (std::int64_t pair = 0; pair < E / 2; ++pair) {
    const double e = static_cast<double>(pair), entries = static_cast<double>(E);
    const double frequency = std::pow(theta, -2.0 * e / entries);
    frequencies.push_back(!scaling ? frequency
                          : scaling->kind == RopeScalingKind::llama3
                              ? llama3(frequency, *scaling)
                              : yarn(frequency, e, entries, theta, *scaling));
  }
  return frequencies;
}

std::vector<double> inverse_frequencies(const ModelSpec& model) {
  return inverse_frequencies(model.rope_dim(), model.rope_theta, model.rope_scaling);
}

double yarn_scale(double factor, double mscale) { return 1 + 0.1 * mscale * std::log(factor); }

double attention_factor(const std::optional<RopeScaling>& scaling) {
  if (!scaling || scaling->kind != RopeScalingKind::yarn) return 1;
  const RopeScaling& s = *scaling;
  if (s.attention_factor > 0) return s.attention_factor;
  if (s.mscale == 0 || s.mscale_all_dim == 0) return yarn_scale(s.factor, 1);
  return yarn_scale(s.factor, s.mscale) / yarn_scale(s.factor, s.mscale_all_dim);
}

Form form_of(const ModelSpec& model) {
  return {.pairs = model.latent && model.latent->interleaved ? Pairs::neighbours : Pairs::halves,
          .factor = attention_factor(model.rope_scaling)};
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
