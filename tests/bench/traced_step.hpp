#pragma once
// One optimizer step under CUPTI's eyes: the time of its kernels, and what its collectives moved.
#include <cstdint>
#include <string>
#include <vector>

#include "impl/run/trainer.hpp"
#include "spec/config/run_config.hpp"
#include "spec/parallel/data_layout.hpp"

namespace assay::impl {

/// A kernel or copy on this rank's GPU, by when it began and ended. [ns]
struct TracedKernel {
  std::string name;
  std::uint64_t begin = 0, end = 0;
  std::int64_t stream = 0;  ///< CUPTI's number of it
  double milliseconds() const { return 1e-6 * static_cast<double>(end - begin); }
};

/// Runs one step, as every rank has to at the same time. In the order in which they began.
std::vector<TracedKernel> traced_step(run::Trainer& trainer);

/// Times by name, the longest first; before them what of the step computes, what communicates while nothing
/// computes, and what lies between the kernels. The last two are
/// the most of a step that communication can be exposed for, in every layout.
void print_kernels(const std::vector<TracedKernel>& kernels);

/// The bus bandwidth of the collectives that move weights and gradients: the spec's bytes of a step
/// (spec/parallel/volume.md) over the time of NCCL's kernels, which includes waiting for another rank's. Of
/// one decoder block: the median kernel, where most calls move one.
void print_collectives(const std::vector<TracedKernel>& kernels, const spec::RunConfig& config,
                       const spec::ModelSpec& model, const spec::Batch& batch, const spec::Layout& layout);

}  // namespace assay::impl
