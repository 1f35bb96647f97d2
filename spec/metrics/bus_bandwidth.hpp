#pragma once
// Rates of collectives, comparable across collectives and numbers of ranks: spec/metrics/bus_bandwidth.md.
#include <cstdint>

#include "spec/count.hpp"
#include "spec/parallel/collective.hpp"

namespace assay::spec::metrics {

/// Bytes that count (spec/parallel/collective.hpp) over the seconds of the collective. [B/s] Errors:
/// SpecError bus_bandwidth_c2 (bytes or seconds not positive and finite).
double algorithm_bandwidth(const Count& bytes, double seconds);

/// Least fraction of these bytes that every rank sends: 2(n-1)/n in an all_reduce, else (n-1)/n; 0 where the
/// table has no ring. Errors: SpecError bus_bandwidth_c1 (fewer than two ranks).
double bus_factor(Collective collective, std::int64_t ranks);

/// bus_factor * algorithm_bandwidth: the rate of a rank's link, in one direction. [B/s]
/// Source: NVIDIA nccl-tests, doc/PERFORMANCE.md, "Bus bandwidth". Errors: SpecError bus_bandwidth_c1, _c2.
double bus_bandwidth(Collective collective, const Count& bytes, double seconds, std::int64_t ranks);

}  // namespace assay::spec::metrics
