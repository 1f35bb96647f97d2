#include "spec/metrics/bus_bandwidth.hpp"

#include <cmath>
#include <string>

#include "spec/error.hpp"
#include "spec/text/quantity.hpp"

namespace assay::spec::metrics {

double algorithm_bandwidth(const Count& bytes, double seconds) {
  // bus_bandwidth_c2
  require(bytes.to_double() > 0 && std::isfinite(seconds) && seconds > 0, "bus_bandwidth_c2", [&] {
    return grouped(bytes) + " bytes in " + scientific(seconds, 3) + " s: both must be positive and finite";
  });
  return bytes.to_double() / seconds;
}

double bus_factor(Collective collective, std::int64_t ranks) {
  // bus_bandwidth_c1
  require(ranks >= 2, "bus_bandwidth_c1",
          [&] { return std::to_string(ranks) + " ranks: a collective is between two at least"; });
  return facts_of(collective).ring * (static_cast<double>(ranks - 1) / static_cast<double>(ranks));
}

double bus_bandwidth(Collective collective, const Count& bytes, double seconds, std::int64_t ranks) {
  return bus_factor(collective, ranks) * algorithm_bandwidth(bytes, seconds);
}

}  // namespace assay::spec::metrics
