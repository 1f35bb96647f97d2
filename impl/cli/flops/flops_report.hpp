#pragma once
// What `assay flops` finds out, apart from how it prints it.
#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "spec/count.hpp"
#include "spec/flops/conventions.hpp"
#include "spec/flops/exact.hpp"
#include "spec/hardware/hardware.hpp"
#include "spec/metrics/metrics.hpp"
#include "spec/model/model_spec.hpp"

namespace assay::impl::cli {

/// What is asked. The rate of a run comes from `tokens_per_second` or from `mfu` (exact, dense peak), never
/// from both.
struct FlopsRequest {
  spec::ModelSpec model;
  std::int64_t sequence_length = 0;
  const spec::Gpu* gpu = nullptr;  ///< none: no peak, no MFU
  spec::Precision precision = spec::Precision::bf16;
  std::int64_t gpus = 1;
  std::optional<double> tokens_per_second = {};  ///< of all GPUs
  std::optional<double> mfu = {};                ///< share of 1
  std::optional<double> tokens = {};             ///< the budget
  std::optional<std::int64_t> tokens_per_step = {};
};

/// One component of the model, or its norms or biases, which are in no GEMM.
struct FlopsLine {
  std::string name;
  Count parameters;
  Count forward, backward;  ///< per token [flop]
};

struct ConventionLine {
  const spec::ConventionFacts* facts = nullptr;
  std::string formula;          ///< for the model
  bool outside_window = false;  ///< counts pairs that no token sees
  spec::ConventionCount count;
  std::optional<double> of_exact;       ///< count / exact
  std::optional<double> dense, sparse;  ///< utilisation of the peaks, unjudged, share of 1
};

struct FlopsReport {
  FlopsRequest request;
  spec::ParameterCounts parameters;
  spec::FlopBreakdown flops;
  std::optional<Count> multi_token_flops;  ///< of the multi-token blocks, per token; else in megatron's alone
  std::vector<FlopsLine> lines;
  std::vector<ConventionLine> conventions;
  const spec::Peak* peak = nullptr;
  std::optional<double> rate;  ///< [token/s]
  std::optional<spec::metrics::Budget> budget;
};

/// Errors: UserError(usage): no peak of this GPU in this precision; an exact MFU above 100 %.
FlopsReport flops_report(const FlopsRequest& request);

/// At most 100 columns: what it comes to, then parameters and FLOPs by component. `all`: also every
/// convention beside exact, its formula and its source.
void print_table(const FlopsReport& report, bool all, std::ostream& out);
void print_json(const FlopsReport& report, std::ostream& out);  ///< one object; counts are decimal strings

}  // namespace assay::impl::cli
