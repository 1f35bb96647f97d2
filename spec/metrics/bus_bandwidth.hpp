#pragma once
// Rates of collectives, comparable across collectives and numbers of ranks: spec/metrics/bus_bandwidth.md.
#include <cstdint>
#include <string_view>

#include "spec/count.hpp"

namespace assay::spec::metrics {

enum class Collective { all_reduce, reduce_scatter, all_gather, all_to_all };
inline constexpr Collective collectives[] = {Collective::all_reduce, Collective::reduce_scatter,
                                             Collective::all_gather, Collective::all_to_all};
std::string_view to_string(Collective collective);  ///< "all_reduce"

/// Bytes of the whole buffer, of an all_to_all what a rank sends, itself included, over the seconds of the
/// collective. [B/s] Errors: SpecError bus_bandwidth_c2 (bytes or seconds not positive and finite).
double algorithm_bandwidth(const Count& bytes, double seconds);

/// Least fraction of the whole buffer that every rank sends: 2(n-1)/n in an all_reduce, else (n-1)/n. Errors:
/// SpecError bus_bandwidth_c1 (fewer than two ranks).
double bus_factor(Collective collective, std::int64_t ranks);

/// bus_factor * algorithm_bandwidth: the rate of a rank's link, in one direction. [B/s]
/// Source: NVIDIA nccl-tests, doc/PERFORMANCE.md, "Bus bandwidth". Errors: SpecError bus_bandwidth_c1, _c2.
double bus_bandwidth(Collective collective, const Count& bytes, double seconds, std::int64_t ranks);

}  // namespace assay::spec::metrics
