#pragma once
// From what a run measures to what it claims: throughput, MFU, HFU, scaling efficiency, the cost of a token
// budget, and the bandwidth of collectives.
//
// Promised, in namespace assay:
//   spec::metrics::tokens_per_second, spec::metrics::achieved_flops, spec::metrics::utilisation
//   spec::metrics::mfu, spec::metrics::hfu, spec::metrics::tokens_per_second_at
//   spec::metrics::scaling_efficiency, spec::metrics::Budget, spec::metrics::budget
//   spec::Collective, spec::metrics::algorithm_bandwidth, spec::metrics::bus_factor
//   spec::metrics::bus_bandwidth
//
// Units: seconds, [token/s] of all GPUs together, [FLOP/s] of one GPU's dense peak, [B/s]; MFU, HFU and
// efficiency are shares of 1. Errors: SpecError metrics_c1 (an input that is not positive and finite),
// metrics_c2 (more than 100 %), metrics_c3, bus_bandwidth_c1, bus_bandwidth_c2.
#include "spec/metrics/bus_bandwidth.hpp"
#include "spec/metrics/metrics.hpp"
