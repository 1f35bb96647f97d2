#include "spec/model/token_statistics.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "spec/error.hpp"

namespace assay::spec {

namespace {
/// Calls use(value, count) for each distinct value of a sorted vector.
template <class T, class Use>
void for_each_run(const std::vector<T>& sorted, Use&& use) {
  for (auto begin = sorted.begin(); begin != sorted.end();) {
    const auto end = std::upper_bound(begin, sorted.end(), *begin);
    use(*begin, static_cast<double>(end - begin));
    begin = end;
  }
}

double collision(std::vector<std::int64_t> ids) {
  std::sort(ids.begin(), ids.end());
  double sum = 0;
  for_each_run(ids, [&](std::int64_t, double count) { sum += count * count; });
  return sum / static_cast<double>(ids.size()) / static_cast<double>(ids.size());
}
}  // namespace

TokenStatistics token_statistics(std::span<const std::int64_t> inputs, std::span<const std::int64_t> targets,
                                 std::int64_t sequence_length, std::int64_t ignore_index) {
  const auto size = static_cast<std::int64_t>(inputs.size());
  // token_statistics_c1
  require(inputs.size() == targets.size() && sequence_length >= 1 && size >= 1 && size % sequence_length == 0,
          "token_statistics_c1", [&] {
            return std::to_string(inputs.size()) + " inputs, " + std::to_string(targets.size()) +
                   " targets, sequence_length=" + std::to_string(sequence_length);
          });
  using Pair = std::pair<std::int64_t, std::int64_t>;
  std::vector<Pair> pairs;
  std::vector<std::int64_t> valid_inputs, valid_targets;
  for (std::size_t n = 0; n < inputs.size(); ++n) {
    if (targets[n] == ignore_index) continue;
    pairs.emplace_back(inputs[n], targets[n]);
    valid_inputs.push_back(inputs[n]);
    valid_targets.push_back(targets[n]);
  }
  // token_statistics_c2
  require(!pairs.empty(), "token_statistics_c2",
          [&] { return "all " + std::to_string(size) + " targets are ignored"; });

  TokenStatistics out{.tokens = static_cast<std::int64_t>(pairs.size()), .sequence_length = sequence_length};
  out.input_collision = collision(std::move(valid_inputs));
  out.target_collision = collision(std::move(valid_targets));
  std::sort(pairs.begin(), pairs.end());
  const double N = static_cast<double>(pairs.size());
  for_each_run(pairs, [&](const Pair& pair, double count) {
    const auto reverse = std::equal_range(pairs.begin(), pairs.end(), Pair{pair.second, pair.first});
    out.pair_collision += count / N * (count / N);
    out.reverse_collision += count / N * (static_cast<double>(reverse.second - reverse.first) / N);
    if (pair.first != pair.second) return;
    out.repeat_share += count / N;
    out.repeat_collision += count / N * (count / N);
  });
  return out;
}

TokenStatistics uniform_tokens(std::int64_t vocab, std::int64_t tokens, std::int64_t sequence_length) {
  // token_statistics_c3
  require(vocab >= 1 && tokens >= 1 && sequence_length >= 1, "token_statistics_c3", [&] {
    return "vocab=" + std::to_string(vocab) + ", tokens=" + std::to_string(tokens) +
           ", sequence_length=" + std::to_string(sequence_length);
  });
  const double V = static_cast<double>(vocab), N = static_cast<double>(tokens);
  // Two different positions agree in one id with probability 1/V, in both with 1/V^2; each agrees with
  // itself.
  const double one = 1 / N + (1 - 1 / N) / V, both = 1 / N + (1 - 1 / N) / (V * V);
  return {.tokens = tokens,
          .sequence_length = sequence_length,
          .input_collision = one,
          .target_collision = one,
          .pair_collision = both,
          .reverse_collision = 1 / (N * V) + (1 - 1 / N) / (V * V),
          .repeat_share = 1 / V,
          .repeat_collision = 1 / (N * V) + (1 - 1 / N) / (V * V * V)};
}

}  // namespace assay::spec
