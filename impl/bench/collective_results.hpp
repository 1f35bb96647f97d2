#pragma once
// Results of `assay bench ceilings` on several ranks, as plain data. Every time is that of the slowest rank:
// the largest of the ranks' medians.
#include <optional>
#include <string>

#include "spec/metrics/bus_bandwidth.hpp"

namespace assay::impl::bench {

/// The ranks, and their links.
struct CollectiveSubject {
  std::string device;  ///< "NVIDIA H200", "CPU"
  std::string engine;  ///< "nccl", "gloo"
  std::int64_t ranks = 0, hosts = 0;
  std::string model;
  std::string dtype;  ///< "bf16": of the weights that are gathered
  std::int64_t repeats = 0;
  std::optional<std::string> max_ctas;  ///< NCCL_MAX_CTAS of rank 0's environment
};

/// One collective at one size.
struct CollectiveRow {
  spec::Collective collective = spec::Collective::all_reduce;
  std::string size;                 ///< "decoder block"
  std::string dtype;                ///< of its elements
  std::int64_t bytes = 0;           ///< of the whole buffer [B]
  double seconds = 0, fastest = 0;  ///< median and least [s]
};

/// A GEMM alone, and beside a collective that runs again and again.
struct OverlapRow {
  std::string gemm;        ///< "gate_up forward"
  CollectiveRow beside{};  ///< its mean time while the GEMM ran, no fastest; 0 where none ended meanwhile
  double alone_seconds = 0, beside_seconds = 0;  ///< of the GEMM: means; beside 0: as above [s]
};

}  // namespace assay::impl::bench
