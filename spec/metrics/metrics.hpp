#pragma once
// Metrics of a run, from its measurements: throughput, MFU, HFU, and the cost of a token budget. Pure
// functions; definitions, units and a worked example: spec/metrics/metrics.md.
#include <cstdint>
#include <optional>

#include "spec/count.hpp"

namespace assay::spec::metrics {

// Errors of every function here: SpecError metrics_c1, an input that is not positive and finite.

/// All tokens of all ranks over the same seconds. [token/s]
double tokens_per_second(const Count& tokens, double seconds);

/// [FLOP/s] of the whole run.
double achieved_flops(double flops_per_token, double tokens_per_second);

/// flops_per_token * tokens_per_second / (peak * gpus), without the limit of 1: the value of a
/// reading of printed numbers, even an impossible one. `peak` of one GPU [FLOP/s]; `tokens_per_second` of all
/// GPUs together. Fraction of 1.
double utilisation(double flops_per_token, double tokens_per_second, double peak, std::int64_t gpus);

/// Model FLOPs utilisation: `flops_per_token` is what the model needs under a named convention (spec/flops),
/// `peak` the dense one of the precision that computes. Errors: SpecError metrics_c2, above 100 %.
double mfu(double flops_per_token, double tokens_per_second, double peak, std::int64_t gpus);

/// Hardware FLOPs utilisation: `executed_flops_per_token` counts what ran, recompute and padding included.
/// Errors: SpecError metrics_c2, above 100 %.
double hfu(double executed_flops_per_token, double tokens_per_second, double peak, std::int64_t gpus);

/// The rate at which a run has this MFU: the inverse of `mfu`. Errors: SpecError metrics_c2, mfu above 1.
/// [token/s]
double tokens_per_second_at(double mfu, double flops_per_token, double peak, std::int64_t gpus);

/// Rate of one GPU over that of one GPU of the base run: (rate / gpus) / (base_rate / base_gpus). Fraction of
/// 1, and above 1 for a slow base.
double scaling_efficiency(double rate, std::int64_t gpus, double base_rate, std::int64_t base_gpus);

/// What training on `tokens` costs.
struct Budget {
  double tokens = 0;
  double flops = 0;                        ///< of the model over all tokens [FLOP]
  std::optional<std::int64_t> iterations;  ///< the least number of steps that reaches `tokens`
  double tokens_per_second = 0;
  double seconds = 0;
  double gpu_hours = 0;
  std::optional<double> energy;  ///< [J]
};

/// `tokens_per_step` as batch.sequences * sequence length, when known. `power`: of one GPU [W]; energy
/// assumes that every GPU draws it the whole time, so with a data sheet's largest power it bounds the GPUs'
/// energy from above; hosts, network and cooling are not in it. Errors: SpecError metrics_c3, more steps than
/// 2^62.
Budget budget(double tokens, double flops_per_token, double tokens_per_second, std::int64_t gpus,
              std::optional<std::int64_t> tokens_per_step = {}, std::optional<double> power = {});

}  // namespace assay::spec::metrics
