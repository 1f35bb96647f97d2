#pragma once
// How much collectives slow down the GEMMs that run beside them.
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "impl/bench/collective_results.hpp"
#include "impl/bench/measure.hpp"
#include "impl/comm/communicator.hpp"

namespace assay::impl::bench {

/// Why this cannot be measured here; empty where it can.
std::string overlap_left_out(at::Device device);

/// The timed GEMM: gate and up, the largest of a block.
inline constexpr const char* overlapped_gemm = "gate_up forward";

/// Mean time of one of the collectives that follow one another from moment 0 on and end at `ends`, in order:
/// of those that end between `begin` and `end`, from the end of the one before them. 0 where none ends then.
/// Not the median from end to end: what is computed beside them holds several up, and lets them end together.
/// [s]
double seconds_of_one(const std::vector<double>& ends, double begin, double end);

/// Mean time of the calls that follow one another at `spans`, begin and end, up to the first that ends after
/// `until`; 0 where that is the first. Not the median: a call that waits for many collectives at once pays
/// for the rate that they reach meanwhile. [s]
double mean_of_spans(const std::vector<std::pair<double, double>>& spans, double until);

/// How many GEMMs and collectives run at the same time, so that there are collectives until the last
/// GEMM ends, even where each slows the other down by half.
struct OverlapCounts {
  std::int64_t gemms = 0, collectives = 0;
  bool operator==(const OverlapCounts&) const = default;
};
/// `repeats` GEMMs, more where they are short beside the collective, fewer where so many collectives would
/// not fit into a queue. Domain: seconds > 0.
OverlapCounts overlap_counts(std::int64_t repeats, double gemm_seconds, double collective_seconds);

/// overlapped_gemm alone, and while each collective of a decoder block runs again and again in the
/// communicator's stream, as in training. GPUs only. Collective; `use` gets the same rows on every rank.
/// Errors: UserError(usage) where the memory does not hold the GEMM.
void measure_overlap(const Plan& plan, Communicator& communicator,
                     const std::function<void(const OverlapRow&)>& use);

}  // namespace assay::impl::bench
