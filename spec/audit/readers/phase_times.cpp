#include "spec/audit/readers/phase_times.hpp"

#include <charconv>
#include <cmath>

#include "spec/tolerance.hpp"

namespace assay::spec::audit {

std::optional<Printed> phase_times(std::string_view text, std::int64_t line) {
  constexpr std::string_view key = "\"phases\"";
  const std::size_t begin = text.rfind(key);
  if (begin == std::string_view::npos) return std::nullopt;
  const char *at = text.data() + begin + key.size(), *const end = text.data() + text.size();
  double sum = 0, size = 0;
  std::int64_t terms = 0;
  // Behind every colon but the object's own stands one number.
  while (at != end && *at != '{') ++at;
  for (; at != end && *at != '}'; ++at) {
    if (*at != ':') continue;
    do ++at;
    while (at != end && *at == ' ');
    double seconds = 0;
    const auto [stop, error] = std::from_chars(at, end, seconds);
    if (error != std::errc() || !std::isfinite(seconds)) return std::nullopt;
    sum += seconds;
    size += std::abs(seconds);
    ++terms;
    at = stop - 1;
  }
  if (at == end || terms == 0) return std::nullopt;
  const double rounding = gamma(2 * terms, unit_roundoff(Dtype::f64)) * size;
  return Printed{sum, sum - rounding, sum + rounding, line};
}

}  // namespace assay::spec::audit
