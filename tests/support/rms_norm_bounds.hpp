#pragma once
// Bounds of rms_norm and of its gradients, term by term, for rms_norm and qk_norm.
#include <vector>

#include "tests/support/tensors.hpp"

namespace assay::tests {

/// Inputs are exact; rstd is the reference's. Sums of n terms count n roundings, every other operation 1 (T2,
/// T1).
class RmsNormBounds {
 public:
  RmsNormBounds(Rounding rounding, reference::Tensor<double> x, reference::Tensor<double> gain,
                reference::Tensor<double> dy, reference::Tensor<double> rstd)
      : rounding_(rounding),
        x_(std::move(x)),
        gain_(std::move(gain)),
        dy_(std::move(dy)),
        rstd_(std::move(rstd)) {}

  /// gamma_{D+7} |y|, then the rounding of storing y (spec/ops/rms_norm.md).
  Allowed y(const reference::Tensor<double>& y) const {
    return each(y.size(), [&](Index i) {
      return rounding_.stored(y[i], rounding_.gamma(entries() + 7) * std::abs(y[i]));
    });
  }

  /// The mean of squares has D + 2 roundings, which the root halves; root and reciprocal add 2.
  Allowed rstd() const {
    return each(rstd_.size(), [&](Index n) { return rounding_.gamma(rstd_roundings()) * rstd_[n]; });
  }

  /// xhat has one rounding more than rstd, dy * xhat two; then N additions and the one to what was there.
  Allowed dgain(const reference::Tensor<double>& before) const {
    return each(before.size(), [&](Index d) {
      double terms = std::abs(before[d]);
      for (Index n = 0; n < rstd_.size(); ++n) terms += std::abs(dy_[n * width() + d] * xhat(n, d));
      return rounding_.gamma(static_cast<double>(rstd_.size()) + rstd_roundings() + 3) * terms;
    });
  }

  /// rstd * (dy * gain - xhat * mean(dy * gain * xhat)): the mean has D + 2 roundings beside those of xhat,
  /// its product with xhat adds those of xhat and 1, the difference 1, the factor rstd its own and 1, adding
  /// to `before` 1.
  Allowed dx(const reference::Tensor<double>& dx, const reference::Tensor<double>& before) const {
    const double roundings = entries() + 2 + 3 * (rstd_roundings() + 1) + 4;
    std::vector<double> means(static_cast<std::size_t>(rstd_.size()));
    for (Index i = 0; i < dx.size(); ++i) {
      const Index n = i / width(), d = i % width();
      means[static_cast<std::size_t>(n)] += std::abs(dy_[i] * gain_[d] * xhat(n, d)) / entries();
    }
    return each(dx.size(), [&](Index i) {
      const Index n = i / width(), d = i % width();
      const double mean = means[static_cast<std::size_t>(n)];
      const double terms =
          rstd_[n] * (std::abs(dy_[i] * gain_[d]) + std::abs(xhat(n, d)) * mean) + std::abs(before[i]);
      return rounding_.stored(dx[i], rounding_.gamma(roundings) * terms);
    });
  }

 private:
  using Index = reference::Index;
  Index width() const { return gain_.size(); }
  double entries() const { return static_cast<double>(gain_.size()); }
  double rstd_roundings() const { return (entries() + 2) / 2 + 2; }
  double xhat(Index n, Index d) const { return x_[n * width() + d] * rstd_[n]; }

  Rounding rounding_;
  reference::Tensor<double> x_, gain_, dy_, rstd_;
};

}  // namespace assay::tests
