#pragma once
// Which source of a mixture each place of the endless order is filled from: a pure function of the place.
// Definition, bound and a worked example: spec/data/mixture.md.
#include <cstddef>
#include <cstdint>
#include <vector>

namespace assay::spec::data {

/// Sources that are mixed by whole-number weights: of sum(weights) places in a row from a multiple of that
/// sum, source k fills exactly weights[k]; and of the first g places w_k g, w_k = weights[k] / sum, to less
/// than one.
class Mixture {
 public:
  static constexpr std::int64_t longest_period = std::int64_t{1} << 20;
  static constexpr std::size_t most_sources = 1000;

  /// Weights divided by their greatest common divisor, without the table of a whole period that a Mixture
  /// makes. Errors: those of the constructor.
  static std::vector<std::int64_t> in_lowest_terms(std::vector<std::int64_t> weights);

  /// Errors: SpecError mixture_c1 (no source, more than most_sources, or a weight < 1), mixture_c2 (the
  /// weights divided by their greatest common divisor add up to more than longest_period).
  explicit Mixture(std::vector<std::int64_t> weights);

  struct Place {
    std::size_t source = 0;
    std::int64_t index = 0;  ///< among the places of that source: 0, 1, 2, ...
    bool operator==(const Place&) const = default;
  };
  /// What fills place `position` >= 0.
  Place at(std::int64_t position) const;

  /// How many of the first `position` places source `source` fills.
  std::int64_t count(std::size_t source, std::int64_t position) const;

  std::size_t sources() const { return weights_.size(); }
  /// Places after which the order of sources repeats: the sum of the weights.
  std::int64_t period() const { return static_cast<std::int64_t>(order_.size()); }
  /// In lowest terms.
  const std::vector<std::int64_t>& weights() const { return weights_; }

 private:
  std::vector<std::int64_t> weights_;
  std::vector<std::uint16_t> order_;               ///< the source of each place of a period
  std::vector<std::int32_t> index_;                ///< of each place of a period among those of its source
  std::vector<std::vector<std::int32_t>> places_;  ///< of each source in a period, ascending
};

}  // namespace assay::spec::data
