#pragma once
// `assay bench ceilings` and `assay bench ops`.
#include <ATen/core/Tensor.h>

#include <functional>
#include <string>

#include "impl/bench/results.hpp"
#include "impl/bench/stopwatch.hpp"
#include "spec/memory/setting.hpp"

namespace assay::impl::bench {

/// What to measure, and with what patience.
struct Plan {
  spec::memory::Setting setting;  ///< one micro-batch a step
  at::Device device = at::kCPU;
  Patience patience;
};

using UseRow = std::function<void(const Row&)>;
using UseLine = std::function<void(const std::string&)>;

Subject subject_of(const Plan& plan);

/// First calls of a large GEMM, in which a tournament chooses its algorithm.
inline constexpr std::int64_t tournament_calls = 80;

/// Work for as long as a GPU's clock takes to settle: before that no algorithm is chosen. Nothing on a CPU.
void settle_clock(const Plan& plan);

/// Calls `work` without autograd. Errors: memory that ran out is the user's to mend, not a fault of the
/// program: UserError(usage), on a CPU before anything is allocated where one op moves more bytes than there
/// are.
void within_memory(const Plan& plan, const std::function<void()>& work);

/// Every op of a step of the model (impl/bench/op_calls.hpp), each alone. Rows are given to `use` as they
/// come. Errors: UserError(usage) where the GPU's memory does not hold an op's tensors.
void measure_ops(const Plan& plan, const UseRow& use);

/// Rates that this device reaches: a large square GEMM, the model's GEMMs, attention, and a copy and a fill
/// of its memory.
void measure_ceilings(const Plan& plan, const UseRow& use);

/// Finds the fastest algorithm under sustained load of each of the model's GEMMs, and keeps it for later runs
/// (impl/ops/gemm/cuda_gemm.hpp): `seconds` of load for each candidate, one line a GEMM. GPUs only.
void tune_gemms(const Plan& plan, double seconds, const UseLine& use);

}  // namespace assay::impl::bench
