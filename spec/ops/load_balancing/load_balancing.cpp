#include "spec/ops/load_balancing/load_balancing.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "spec/error.hpp"

namespace assay::spec::load_balancing {

namespace {
void check_normalizer(double normalizer) {
  // load_balancing_c3
  require(std::isfinite(normalizer) && normalizer > 0, "load_balancing_c3",
          [&] { return "normalizer=" + std::to_string(normalizer); });
}

void check_shape(const Shape& s) {
  // load_balancing_c1
  require(s.N >= 0 && s.X >= 1 && s.G >= 1 && s.N % s.G == 0, "load_balancing_c1", [&] {
    return "N=" + std::to_string(s.N) + ", X=" + std::to_string(s.X) + ", G=" + std::to_string(s.G);
  });
}
}  // namespace

std::string_view to_string(Form form) {
  switch (form) {
    case Form::global:
      return "global";
    case Form::running:
      return "running";
    case Form::sequence:
      return "sequence";
    case Form::micro_batch:
      return "micro_batch";
    case Form::hugging_face:
      return "hugging_face";
  }
  return {};
}

void check(const Shape& s, std::int64_t active, std::span<const double> shares, double normalizer) {
  check_shape(s);
  const bool sound = static_cast<std::int64_t>(shares.size()) == s.G * s.X &&
                     std::all_of(shares.begin(), shares.end(),
                                 [&](double f) { return f >= 0 && f <= static_cast<double>(active); });
  // load_balancing_c2
  require(sound, "load_balancing_c2", [&] {
    std::string text = "shares";
    for (const double f : shares) text += " " + std::to_string(f);
    return text + ", not G X=" + std::to_string(s.G * s.X) + " in [0, A=" + std::to_string(active) + "]";
  });
  check_normalizer(normalizer);
}

void check_z(std::int64_t N, std::int64_t X, double normalizer) {
  check_shape({.N = N, .X = X});
  check_normalizer(normalizer);
}

std::vector<std::int64_t> counts(std::span<const std::int64_t> chosen, std::int64_t X) {
  std::vector<std::int64_t> out(static_cast<std::size_t>(X));
  for (const std::int64_t expert : chosen) ++out.at(static_cast<std::size_t>(expert));
  return out;
}

void move_bias(std::span<double> bias, std::span<const std::int64_t> counts, double rate) {
  // load_balancing_c4
  require(bias.size() == counts.size() &&
              std::all_of(counts.begin(), counts.end(), [](std::int64_t count) { return count >= 0; }) &&
              std::isfinite(rate) && rate >= 0,
          "load_balancing_c4", [&] {
            return std::to_string(bias.size()) + " biases, " + std::to_string(counts.size()) +
                   " counts, none of which may be negative, rate=" + std::to_string(rate);
          });
  Count all;
  for (const std::int64_t count : counts) all += count;
  for (std::size_t e = 0; e < bias.size(); ++e) {
    const Count load = Count(counts[e]) * static_cast<std::int64_t>(bias.size());
    if (load < all) bias[e] += rate;
    if (load > all) bias[e] -= rate;
  }
}

double largest_load(std::span<const double> counts) {
  double all = 0, most = 0;
  for (const double count : counts) all += count, most = std::max(most, count);
  return all > 0 ? most * static_cast<double>(counts.size()) / all : 0;
}

Flops shares_flops(const Shape& s) { return {0, Count(s.G) * s.X}; }
Flops forward_flops(const Shape& s) { return {0, 2 * Count(s.N) * s.X + 2}; }
Flops backward_flops(const Shape& s) { return {0, Count(s.G) * s.X + 2}; }
Flops z_forward_flops(std::int64_t N, std::int64_t X) { return {0, Count(N) * (3 * Count(X) + 4) + 1}; }
Flops z_backward_flops(std::int64_t N, std::int64_t X) { return {0, Count(N) * (3 * Count(X) + 1) + 2}; }
Flops entropy_flops(std::int64_t N, std::int64_t X) { return {0, 3 * Count(N) * X}; }

Count forward_bytes(const Shape& s, std::int64_t statistic) { return (Count(s.N) + s.G) * s.X * statistic; }
Count backward_bytes(const Shape& s, std::int64_t statistic) { return 2 * Count(s.G) * s.X * statistic; }
Count z_forward_bytes(std::int64_t N, std::int64_t X, std::int64_t statistic) {
  return Count(N) * (Count(X) + 1) * statistic;
}
Count z_backward_bytes(std::int64_t N, std::int64_t X, std::int64_t statistic) {
  return Count(N) * (2 * Count(X) + 1) * statistic;
}

}  // namespace assay::spec::load_balancing
