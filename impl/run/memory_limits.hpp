#pragma once
// What a run asks of the host's memory, judged before any of it is allocated.
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <exception>
#include <optional>

#include "spec/batch/batch.hpp"
#include "spec/config/run_config.hpp"
#include "spec/error.hpp"
#include "spec/model/model_spec.hpp"

namespace assay::impl::run {

/// Host memory that a run needs at least, on one rank [B]. Lower bounds: activations within a block, products
/// and the library's own memory come on top.
struct MemoryNeed {
  double state = 0;    ///< weights, gradients, moments, master weights; 0 where they lie on a GPU
  double inputs = 0;   ///< inputs of the blocks of one forward pass; 0 on a GPU
  double samples = 0;  ///< token ids of the steps that are read ahead and of the one that runs
};
MemoryNeed memory_need(const spec::RunConfig& config, const spec::ModelSpec& model, const spec::Batch& batch,
                       at::Device device);

/// Refuses what cannot fit: a system that overcommits would hand the memory out and kill the process later,
/// without a word, or read samples for hours first. Errors: UserError(usage) naming what is too large and the
/// settings that make it smaller.
void refuse_what_cannot_fit(const spec::RunConfig& config, const spec::ModelSpec& model,
                            const spec::Batch& batch, at::Device device, std::int64_t host_memory);

/// Memory that ran out while training, told apart from faults of the program.
std::optional<UserError> out_of_memory(const std::exception& error, const spec::Batch& batch);

}  // namespace assay::impl::run
