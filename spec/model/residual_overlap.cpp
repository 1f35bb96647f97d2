#include "spec/model/residual_overlap.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "spec/ops/rope/rope.hpp"
#include "spec/ops/swiglu/swiglu.hpp"

namespace assay::spec {

namespace {

/// 1 + 1/2 + ... + 1/n.
double harmonic(double n) {
  if (n > 64) return std::log(n) + std::numbers::egamma + 1 / (2 * n) - 1 / (12 * n * n);
  double sum = 0;
  for (double k = 1; k <= n; ++k) sum += 1 / k;
  return sum;
}

/// One group of positions of a sequence and the overlaps of its residual stream.
struct Group {
  double share = 0;      ///< of the sequence
  double self_hit = 0;   ///< sum of squared attention weights of one position
  double pair_hit = 0;   ///< chance that two positions of the same history attend to the same token
  double self = 0;       ///< overlap of a position with itself
  double same = 0;       ///< of two positions of one sequence with the same id
  double different = 0;  ///< of two positions of one sequence with different ids
};

std::vector<Group> groups_of(std::int64_t sequence_length, double score_variance, double embedding) {
  std::vector<Group> groups;
  for (std::int64_t begin = 0; begin < sequence_length;) {
    const std::int64_t end = std::min(sequence_length, 2 * begin + 1);
    const double before = static_cast<double>(begin), after = static_cast<double>(end);
    const double n = (after - before) / (harmonic(after) - harmonic(before));  // harmonic mean of t + 1
    Group group;
    group.share = (after - before) / static_cast<double>(sequence_length);
    group.self_hit = 1 / (1 + (n - 1) * std::exp(-score_variance));
    group.pair_hit = n > 1.5 ? 2 * (n - harmonic(std::round(n))) / (n * (n - 1)) : 1;
    group.self = group.same = embedding;
    groups.push_back(group);
    begin = end;
  }
  return groups;
}

/// E[a(g)]^2 and E[a(g)^2] of a gate's activation a(g) = g sigma(z(g)) for g ~ N(0, variance), by the
/// trapezoidal rule over +-9 standard deviations.
struct GateMoments {
  double squared_mean, mean_square;
};
GateMoments gate_moments(double variance, swiglu::Activation activation) {
  double weight = 0, mean = 0, square = 0;
  for (int i = -900; i <= 900; ++i) {
    const double z = i / 100.0, density = std::exp(-z * z / 2), g = std::sqrt(variance) * z;
    const double value = g / (1 + std::exp(-swiglu::argument(g, activation)));
    weight += density;
    mean += density * value;
    square += density * value * value;
  }
  return {mean / weight * (mean / weight), square / weight};
}

/// Overlap that the gated branch adds when its normalised inputs overlap by rho: scale * rho * E[a(g) a(g')],
/// the expectation as its Hermite series: terms of order 0 and 1 exactly, the rest as order 2.
class GatedBranch {
 public:
  GatedBranch(double scale, double variance, swiglu::Activation activation) : scale_(scale) {
    const GateMoments moments = gate_moments(variance, activation);
    order_0_ = moments.squared_mean;
    order_1_ = variance / 4;  // a'(g) = 1/2 + an odd function, as z is odd
    rest_ = std::max(0.0, moments.mean_square - order_0_ - order_1_);
  }
  double operator()(double rho) const { return scale_ * rho * (order_0_ + rho * (order_1_ + rho * rest_)); }

 private:
  double scale_, order_0_, order_1_, rest_;
};

}  // namespace

ResidualOverlap residual_overlap(const ModelSpec& model, const TokenStatistics& batch) {
  check(model);
  const double D = static_cast<double>(model.width), variance = model.init_std * model.init_std;
  const double branch_variance = variance / (2 * static_cast<double>(model.layers)), eps = model.norm_eps;
  const double projected = D * variance;  // variance of an entry of a projection of a normalised state
  const double attention = static_cast<double>(model.heads * model.head_dim) * branch_variance * projected;
  const GatedBranch mlp(static_cast<double>(model.ffn) * branch_variance * projected, projected,
                        swiglu::activation_of(model.mlp));
  const double c = batch.input_collision;

  // Turned queries and keys are both longer by rope's factor.
  const double scores =
      (model.qk_norm ? 1 : projected * projected) * std::pow(rope::attention_factor(model.rope_scaling), 4);
  auto groups = groups_of(batch.sequence_length, scores, variance);
  double same = variance, different = 0;  // overlaps of positions of two sequences
  // (mean 1/rms)^2: what normalisation does to the overlap of two positions drawn at random.
  const auto norm = [&] {
    double mean = 0;
    for (const Group& g : groups) mean += g.share / std::sqrt(g.self + eps);
    return mean * mean;
  };
  const auto unit = [](double rho) { return std::min(1.0, rho); };

  for (std::int64_t layer = 0; layer < model.layers; ++layer) {
    const double shared = attention * unit(norm() * (c * same + (1 - c) * different));
    for (Group& g : groups) {
      const double self = g.self / (g.self + eps),
                   other = unit((c * g.same + (1 - c) * g.different) / (g.self + eps));
      g.self += attention * (g.self_hit * self + (1 - g.self_hit) * other);
      const double added = attention * (g.pair_hit * self + (1 - g.pair_hit) * other);
      g.same += added;
      g.different += added;
    }
    same += shared;
    different += shared;
    const double scale = norm();
    for (Group& g : groups) {
      const double inverse = 1 / (g.self + eps);
      g.same += mlp(unit(g.same * inverse));
      g.different += mlp(unit(g.different * inverse));
      g.self += mlp(unit(g.self * inverse));
    }
    same += mlp(unit(same * scale));
    different += mlp(unit(different * scale));
  }

  ResidualOverlap out{.positions = {}, .self = 0};
  for (const Group& g : groups) {
    out.positions.push_back({g.share, g.self});
    out.self += g.share * g.self / (g.self + eps);
  }
  // Pairs within one sequence are a share T/N of all; the last group holds most of them.
  const Group& late = groups.back();
  const double within =
      std::min(1.0, static_cast<double>(batch.sequence_length) / static_cast<double>(batch.tokens));
  const auto mixed = [&](double across, double inside) {
    return std::min(out.self, (1 - within) * across * norm() + within * inside / (late.self + eps));
  };
  out.same = mixed(same, late.same);
  out.different = mixed(different, late.different);
  return out;
}

}  // namespace assay::spec
