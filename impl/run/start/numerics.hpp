#pragma once
// What compute.attention=auto and compute.deterministic=auto come to, settled once, before memory is planned.
// All that follows reads the settled configuration: the plan of memory, the ops, the banner and the record.
#include <ATen/core/Tensor.h>

#include <functional>
#include <string>
#include <vector>

#include "impl/comm/communicator.hpp"
#include "spec/batch/batch.hpp"
#include "spec/config/run_config.hpp"
#include "spec/count.hpp"
#include "spec/memory/attention.hpp"
#include "spec/model/model_spec.hpp"
#include "spec/parallel/data_layout.hpp"
#include "spec/record/event.hpp"

namespace assay::impl::run {

/// What a GPU and its libraries say.
struct GpuAnswers {
  std::int64_t memory = 0;  ///< in all [B]
  std::int64_t free = 0;    ///< for tensors [B]
  /// What a run of the configuration is planned to take. [B]
  std::function<Count(const spec::RunConfig&)> peak;
  /// Why `backend` does not compute both passes of the run's attention; empty where it does.
  std::function<std::string(spec::AttentionBackend, bool fixed_order)> refusal;
};

struct Numerics {
  /// As asked, with compute.deterministic on or off and, on a GPU, compute.attention a backend by name.
  spec::RunConfig config;
  std::vector<spec::record::Warning> notes;  ///< where something else was settled than was asked first
};

/// On a GPU: the first backend that takes both passes. `auto` of compute.deterministic is on where that
/// backend adds in a fixed order and a run so is planned to take no more than is free, with 2 % to spare, or
/// no more than without. A backend is not asked where the run is beyond the GPU's memory, and will be
/// refused. Errors: UserError(usage) where a backend that was asked for by name refuses.
Numerics settle(const spec::RunConfig& asked, const spec::attention::Case& of, const GpuAnswers& gpu);

/// What this rank's `settle` comes to, once all ranks come to the same. Collective. Errors: of one rank,
/// those of `settle`; of several AgreedError, where one refuses or two differ.
Numerics agree_on_numerics(const std::function<Numerics()>& settle, Communicator& communicator);

/// Where linears are to be in FP8: on a GPU in bf16 runs, by a recipe that GPU and library compute, of
/// extents that its GEMMs take. Errors: UserError(usage), which names the nearest choice; SpecError
/// quantise_c3.
void refuse_fp8(const spec::RunConfig& config, const spec::ModelSpec& model, const spec::Batch& batch,
                at::Device device);

/// For a run on `device`: what its libraries and the least free memory of all ranks allow. On a CPU auto of
/// compute.deterministic is on. Collective. Errors: as agree_on_numerics.
Numerics settle_numerics(const spec::RunConfig& asked, const spec::ModelSpec& model, const spec::Batch& batch,
                         at::Device device, const spec::Layout& layout, Communicator& communicator);

}  // namespace assay::impl::run
