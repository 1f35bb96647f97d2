#include "spec/audit/readers/line_watch.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace assay::spec::audit {
namespace {

constexpr std::size_t place(Field field) {
  return static_cast<std::size_t>(watched_places[static_cast<std::size_t>(field)]);
}

/// Fewer lines show no range.
constexpr std::size_t enough = 100;

/// Half of what prints so, relative.
double rounding_of(const Step& step, std::size_t which) {
  const auto& number = step[watched_fields[which]];
  return number && number->value > 0 ? (number->high - number->low) / number->value : 0;
}

}  // namespace

WatchedNumbers watched_numbers(const Step& step) {
  WatchedNumbers out;
  for (std::size_t i = 0; i < watched_fields.size(); ++i) {
    const auto& number = step[watched_fields[i]];
    out[i] = number ? number->value : std::numeric_limits<double>::quiet_NaN();
  }
  return out;
}

double LineWatch::Pair::of(const WatchedNumbers& numbers) const {
  if (a == b) return numbers[a];
  return product ? numbers[a] * numbers[b] : numbers[a] / numbers[b];
}

void LineWatch::learn(const Step& step) {
  constexpr std::size_t seconds = place(Field::seconds), rate = place(Field::tokens_per_second),
                        mfu = place(Field::mfu), flops = place(Field::flops_rate),
                        tokens = place(Field::tokens);
  if (pairs_.empty())
    pairs_ = {{rate, seconds, true, {}}, {mfu, rate, false, {}},  {mfu, seconds, true, {}},
              {flops, rate, false, {}},  {mfu, flops, false, {}}, {flops, seconds, true, {}},
              {tokens, tokens, true, {}}};
  const WatchedNumbers numbers = watched_numbers(step);
  for (Pair& pair : pairs_) {
    const double x = pair.of(numbers);
    if (!(x > 0) || !std::isfinite(x)) continue;
    pair.first.push_back(x);
    pair.rounding = std::max(pair.rounding, rounding_of(step, pair.a) + rounding_of(step, pair.b));
  }
  last_rate_ = numbers[place(Field::learning_rate)];
}

void LineWatch::settle() {
  settled_ = true;
  std::erase_if(pairs_, [](const Pair& pair) { return pair.first.size() < enough; });
  for (Pair& pair : pairs_) {
    std::sort(pair.first.begin(), pair.first.end());
    const std::size_t hundredth = pair.first.size() / 100;
    const double low = pair.first[hundredth], high = pair.first[pair.first.size() - 1 - hundredth];
    const double wider = 1 + std::max(high / low - 1, pair.rounding);
    pair.low = low / wider, pair.high = high * wider;
    pair.first = {};
  }
}

bool LineWatch::apart(const WatchedNumbers& numbers) {
  if (!settled_) settle();
  bool out = false;
  for (const Pair& pair : pairs_) {
    const double x = pair.of(numbers);
    out |= x < pair.low || x > pair.high;  // not where one is missing
  }
  const double loss = numbers[place(Field::loss)], rate = numbers[place(Field::learning_rate)];
  out |= loss < 1e-4 || loss > 1000;  // loss_possible
  out |= std::abs(rate - last_rate_) > 0.1 * std::max(std::abs(rate), std::abs(last_rate_));
  if (!std::isnan(rate)) last_rate_ = rate;
  return out;
}

}  // namespace assay::spec::audit
