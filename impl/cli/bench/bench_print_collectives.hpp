#pragma once
// Tables and JSON of what `assay bench ceilings` measured of several ranks.
#include <string>
#include <vector>

#include "impl/bench/collective_results.hpp"

namespace assay::impl::cli {

/// "collectives of 2 ranks on 1 host by nccl, each on NVIDIA H200, at the sizes of llama-1.36b in bf16,
/// NCCL_MAX_CTAS=8", what the times are, and the heading of the columns.
std::string collectives_heading(const bench::CollectiveSubject& subject);

/// Collective, dtype, size, bytes, milliseconds, and both bandwidths (spec/metrics/bus_bandwidth.md).
std::string collective_line(const bench::CollectiveRow& row, const bench::CollectiveSubject& subject);

/// Heading of the rows of GEMMs beside collectives, and one of them: the GEMM's times, how much longer
/// it takes, and the collective's bus bandwidth meanwhile. "-" where too few ended at the same time.
std::string overlap_heading(const std::string& gemm);
std::string overlap_line(const bench::OverlapRow& row, const bench::CollectiveSubject& subject);

/// How much longer a GEMM takes beside a collective, as a share of its time alone.
double slow_down(const bench::OverlapRow& row);

/// {"schema": "assay.bench.collectives/1", "device", "engine", "ranks", "hosts", "model", "dtype", "repeats",
/// "nccl_max_ctas" (text or null), "rows": [{"collective", "size", "dtype", "bytes", "seconds",
/// "fastest_seconds", "bytes_per_s", "bus_bytes_per_s"}], "overlap": [{"gemm", "gemm_seconds",
/// "gemm_seconds_beside", "slow_down", and the members of a row, of the collective meanwhile}],
/// "overlap_left_out": why there is none, or null}. What could not be measured is null.
std::string collectives_json(const bench::CollectiveSubject& subject,
                             const std::vector<bench::CollectiveRow>& rows,
                             const std::vector<bench::OverlapRow>& overlap, const std::string& left_out);

}  // namespace assay::impl::cli
