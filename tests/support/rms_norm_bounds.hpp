#pragma once
// Bounds of rms_norm and of its gradients, term by term, for rms_norm and qk_norm.
#include <vector>

#include "tests/support/tensors.hpp"

namespace assay::tests {

/// Inputs are exact, but for dy where `dy_bound` says how far it is off, an entry each; rstd is the
/// reference's. Sums of n terms count n roundings, every other operation 1 (T2, T1).
class RmsNormBounds {
 public:
  RmsNormBounds(Rounding rounding, reference::Tensor<double> x, reference::Tensor<double> gain,
                reference::Tensor<double> dy, reference::Tensor<double> rstd,
                std::vector<double> dy_bound = {})
      : rounding_(rounding),
        x_(std::move(x)),
        gain_(std::move(gain)),
        dy_(std::move(dy)),
        rstd_(std::move(rstd)),
        dy_bound_(std::move(dy_bound)) {
    dy_bound_.resize(static_cast<std::size_t>(dy_.size()));
  }

  /// gamma_{D+7} |y|, then the rounding of storing y (spec/ops/rms_norm/rms_norm.md).
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
      double terms = std::abs(before[d]), off = 0;
      for (Index n = 0; n < rstd_.size(); ++n) {
        terms += largest_dy(n * width() + d) * std::abs(xhat(n, d));
        off += dy_off(n * width() + d) * std::abs(xhat(n, d));
      }
      return off + rounding_.gamma(static_cast<double>(rstd_.size()) + rstd_roundings() + 3) * terms;
    });
  }

  /// rstd * (dy * gain - xhat * mean(dy * gain * xhat)): the mean has D + 2 roundings beside those of xhat,
  /// its product with xhat adds those of xhat and 1, the difference 1, the factor rstd its own and 1, adding
  /// to `before` 1.
  Allowed dx(const reference::Tensor<double>& dx, const reference::Tensor<double>& before) const {
    const double roundings = entries() + 2 + 3 * (rstd_roundings() + 1) + 4;
    const std::vector<double> of_dy = terms_of([&](Index i) { return largest_dy(i); }),
                              off = terms_of([&](Index i) { return dy_off(i); });
    return each(dx.size(), [&](Index i) {
      const auto at = static_cast<std::size_t>(i);
      return rounding_.stored(dx[i],
                              off[at] + rounding_.gamma(roundings) * (of_dy[at] + std::abs(before[i])));
    });
  }

 private:
  using Index = reference::Index;
  Index width() const { return gain_.size(); }
  double entries() const { return static_cast<double>(gain_.size()); }
  double rstd_roundings() const { return (entries() + 2) / 2 + 2; }
  double xhat(Index n, Index d) const { return x_[n * width() + d] * rstd_[n]; }
  double dy_off(Index i) const { return dy_bound_[static_cast<std::size_t>(i)]; }
  double largest_dy(Index i) const { return std::abs(dy_[i]) + dy_off(i); }

  /// rstd * (|upstream gain| + |xhat| mean(|upstream gain xhat|)) for every entry of dx.
  template <class Upstream>
  std::vector<double> terms_of(const Upstream& upstream) const {
    std::vector<double> means(static_cast<std::size_t>(rstd_.size())), terms;
    for (Index i = 0; i < dy_.size(); ++i) {
      const Index n = i / width(), d = i % width();
      means[static_cast<std::size_t>(n)] += std::abs(upstream(i) * gain_[d] * xhat(n, d)) / entries();
    }
    for (Index i = 0; i < dy_.size(); ++i) {
      const Index n = i / width(), d = i % width();
      terms.push_back(rstd_[n] * (std::abs(upstream(i) * gain_[d]) +
                                  std::abs(xhat(n, d)) * means[static_cast<std::size_t>(n)]));
    }
    return terms;
  }

  Rounding rounding_;
  reference::Tensor<double> x_, gain_, dy_, rstd_;
  std::vector<double> dy_bound_;
};

}  // namespace assay::tests
