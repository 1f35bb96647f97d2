// How numbers of an invariant are written.
#include <cmath>

#include "spec/audit/invariants.hpp"
#include "spec/text/quantity.hpp"

namespace assay::spec::audit {

std::string shown(double number, Unit unit) {
  if (!std::isfinite(number)) return std::isnan(number) ? "nan" : number > 0 ? "inf" : "-inf";
  const double size = std::abs(number);
  const auto plain = [](double x) {
    if (std::abs(x) >= 1e15) return scientific(x, 4);
    if (std::abs(x) >= 1000 || x == std::round(x))
      return grouped(static_cast<std::int64_t>(std::llround(std::abs(x))));
    if (std::abs(x) >= 1) return fixed(std::abs(x), 4);
    return std::abs(x) >= 1e-2 ? fixed(std::abs(x), 4) : scientific(std::abs(x), 3);
  };
  const std::string sign = number < 0 ? "-" : "";
  switch (unit) {
    case Unit::tokens_per_second:
      return sign + plain(size) + " /s";
    case Unit::seconds:
      return sign + fixed(size, size < 10 ? 4 : 2) + " s";
    case Unit::flops:
      return sign + (size < 1e21 ? si(size, "FLOP") : scientific(size, 3) + " FLOP");
    case Unit::flops_per_second:
      return sign + (size < 1e12 || size >= 1e17
                         ? (size < 1e21 ? si(size, "FLOP/s") : scientific(size, 3) + " FLOP/s")
                         : fixed(size / 1e12, 1) + " TFLOP/s");
    case Unit::share:
      return percent(number, 2);
    case Unit::bytes:
      return sign + (size < 1e15 ? fixed(size / 1e9, 2) + " GB" : scientific(size, 3) + " B");
    case Unit::nats:
      return sign + (size < 1e6 ? fixed(size, 4) : scientific(size, 3));
    default:
      return sign + plain(size);
  }
}

std::string shown(const Interval& numbers, Unit unit) {
  std::string low = shown(numbers.low, unit);
  const std::string high = shown(numbers.high, unit);
  if (low == high) return low;
  if (numbers.high >= 1e290) return ">= " + low;
  if (numbers.low <= 0) return "<= " + high;
  // Roundings alone: the middle says it.
  if (numbers.high / numbers.low < 1.02) return shown(numbers.middle(), unit);
  return low + " .. " + high;
}

}  // namespace assay::spec::audit
