#include "spec/data/mixture.hpp"

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>

#include "spec/error.hpp"

namespace assay::spec::data {
namespace {

/// Of Tijdeman's algorithm, before place number `place` + 1 with `filled` places of this source: how far the
/// source may be put off, a fraction; nothing where it is not its turn yet. All times 2 n - 2 and the period.
std::optional<std::int64_t> slack(std::int64_t weight, std::int64_t place, std::int64_t filled,
                                  std::int64_t period, std::int64_t twice) {
  const std::int64_t behind = (weight * (place + 1) - filled * period) * twice;
  if (behind < period) return {};
  return period * twice - period - behind;
}

}  // namespace

std::vector<std::int64_t> Mixture::in_lowest_terms(std::vector<std::int64_t> weights) {
  // mixture_c1
  require(!weights.empty() && weights.size() <= most_sources, "mixture_c1", [&] {
    return std::to_string(weights.size()) + " sources: a mixture has 1 to " + std::to_string(most_sources);
  });
  std::int64_t divisor = 0;
  for (const std::int64_t weight : weights) {
    // mixture_c1
    require(weight >= 1, "mixture_c1",
            [&] { return "a weight of " + std::to_string(weight) + ": it must be above 0"; });
    divisor = std::gcd(divisor, weight);
  }
  std::int64_t sum = 0;
  for (std::int64_t& weight : weights) {
    weight /= divisor;
    // mixture_c2
    require(weight <= longest_period - sum, "mixture_c2", [] {
      return "in lowest terms the weights add up to more than " + std::to_string(longest_period) +
             ": round them, as 0.7, 0.2 and 0.1";
    });
    sum += weight;
  }
  return weights;
}

Mixture::Mixture(std::vector<std::int64_t> weights) : weights_(in_lowest_terms(std::move(weights))) {
  const std::int64_t period = std::accumulate(weights_.begin(), weights_.end(), std::int64_t{0});
  const auto twice = static_cast<std::int64_t>(2 * std::max<std::size_t>(weights_.size(), 2) - 2);
  order_.reserve(static_cast<std::size_t>(period));
  index_.reserve(static_cast<std::size_t>(period));
  places_.resize(weights_.size());
  for (std::int64_t place = 0; place < period; ++place) {
    std::size_t next = 0;
    std::optional<std::int64_t> least;
    for (std::size_t k = 0; k < weights_.size(); ++k) {
      const auto own = slack(weights_[k], place, static_cast<std::int64_t>(places_[k].size()), period, twice);
      // The deadline is slack / weight: of two equal ones the first source's.
      if (own && (!least || *own * weights_[next] < *least * weights_[k])) least = own, next = k;
    }
    order_.push_back(static_cast<std::uint16_t>(next));
    index_.push_back(static_cast<std::int32_t>(places_[next].size()));
    places_[next].push_back(static_cast<std::int32_t>(place));
  }
}

Mixture::Place Mixture::at(std::int64_t position) const {
  const auto within = static_cast<std::size_t>(position % period());
  const std::size_t source = order_[within];
  return {source, position / period() * weights_[source] + index_[within]};
}

std::int64_t Mixture::count(std::size_t source, std::int64_t position) const {
  const auto& places = places_[source];
  const auto within = static_cast<std::int32_t>(position % period());
  return position / period() * weights_[source] +
         (std::lower_bound(places.begin(), places.end(), within) - places.begin());
}

}  // namespace assay::spec::data
