#include "impl/generate/choose.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "spec/error.hpp"

namespace assay::impl::generate {

namespace {
/// Sets to 0 what is not among the fewest most probable whose sum reaches `share` of all.
void keep_most_probable(std::vector<double>& probabilities, double share) {
  std::vector<std::size_t> order(probabilities.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return probabilities[a] > probabilities[b]; });
  const double most = share * std::accumulate(probabilities.begin(), probabilities.end(), 0.0);
  double sum = 0;
  for (const std::size_t token : order) {
    const bool reached = sum >= most;
    sum += probabilities[token];
    if (reached) probabilities[token] = 0;
  }
}
}  // namespace

std::int64_t choose(std::span<const double> logits, const Sampling& sampling, double u) {
  const auto largest = std::ranges::max_element(logits);
  if (std::ranges::any_of(logits, [](double each) { return std::isnan(each); }) || !std::isfinite(*largest))
    throw UserError(ExitCode::non_finite,
                    "the model's logits are NaN or infinite: its weights are not those of a sound run, or "
                    "the compute type is too small for them; try --dtype f32, or another checkpoint");
  if (sampling.temperature == 0) return largest - logits.begin();
  std::vector<double> probabilities;
  for (const double each : logits)
    probabilities.push_back(std::exp((each - *largest) / sampling.temperature));
  if (sampling.top_p < 1) keep_most_probable(probabilities, sampling.top_p);
  const double end = u * std::accumulate(probabilities.begin(), probabilities.end(), 0.0);
  double sum = 0;
  std::int64_t last = 0;
  for (std::size_t token = 0; token < probabilities.size(); ++token) {
    if (probabilities[token] == 0) continue;
    sum += probabilities[token];
    last = static_cast<std::int64_t>(token);
    if (end < sum) break;
  }
  return last;
}

}  // namespace assay::impl::generate
