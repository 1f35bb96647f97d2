#pragma once
// What a run asks of a device's memory and of the host's, judged before any of it is allocated.
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <string>

#include "impl/comm/communicator.hpp"
#include "spec/batch/batch.hpp"
#include "spec/config/run_config.hpp"
#include "spec/error.hpp"
#include "spec/plan/plan.hpp"
#include "spec/record/event.hpp"

namespace assay::impl::run {

/// Memory that is there [B], and who shares it.
struct MachineMemory {
  std::int64_t device = 0;  ///< of the GPU; on the CPU the host's
  std::int64_t host = 0;
  std::int64_t ranks = 1;           ///< of this host, that have its memory between them
  std::int64_t ranks_per_host = 1;  ///< of every host; 0 where they differ (impl/run/start/host_ranks.hpp)
  std::string limit = {};           ///< the cgroup's file that leaves no more; empty: all that the host has
};

/// That of this rank. Collective.
MachineMemory machine_memory(at::Device device, Communicator& communicator);

/// What one rank's tensors need on `device` (spec/plan/plan.md). `layout`: the run's, where its hosts are
/// known; without, as setting_of. `room`: with the largest load of expert ranks that fits in it [B]; without,
/// with equal loads.
spec::memory::Plan memory_plan(const spec::RunConfig& config, const spec::ModelSpec& model,
                               const spec::Batch& batch, at::Device device,
                               const std::optional<spec::Layout>& layout = {},
                               const std::optional<Count>& room = {});

/// Memory that the tensors of any rank may take [B], before they are allocated: what is free on a GPU, less
/// what the allocator loses by cutting it up; on the CPU a rank's part of the host's. Collective.
Count room_of_every_rank(const spec::RunConfig& config, const spec::Batch& batch, at::Device device,
                         const MachineMemory& machine, Communicator& communicator);

/// What this rank's tensors may take now, those that are there included [B]; 0 on the CPU, where nobody
/// knows.
Count room_now(at::Device device);

/// "set batch.micro=2 (71.0 GiB) or memory.recompute=block (66.0 GiB), the batch of a step stays the same":
/// what makes `plan` fit in `capacity` [B], or that nothing does.
std::string ways_out(const spec::memory::Plan& plan, const Count& capacity);

/// Host memory for the token ids of the steps that are read ahead and of the one that runs. [B]
double bytes_read_ahead(const spec::RunConfig& config, const spec::Batch& batch);

/// Refuses what cannot fit: a GPU would run out in the middle of a step; a system that overcommits would hand
/// the memory out and kill the process later, without a word, or read samples for hours first. Errors:
/// UserError(usage) naming what is too large, the largest micro-batch, the cheapest setting of recompute and
/// the other layouts and tensor ranks of these ranks that fit, or on how many GPUs it would, or else what
/// makes it smaller. Ranks of a host have its memory in equal parts. `model`: the whole one.
void refuse_what_cannot_fit(const spec::memory::Plan& plan, const spec::RunConfig& config,
                            const spec::ModelSpec& model, const spec::Batch& batch,
                            const MachineMemory& machine);

/// The record's event after `step`: `measured` is the device's peak so far, 0 where it is not known [B];
/// `load`: the largest of expert ranks so far.
spec::record::Memory memory_event(const spec::memory::Plan& plan, std::int64_t step, at::Device device,
                                  std::int64_t capacity, std::int64_t measured, double load = 1);

/// Other layouts and tensor ranks of the same ranks that are planned to take clearly less than `plan`; empty
/// where there are none.
std::string divisions_with_less(const spec::memory::Plan& plan, const spec::RunConfig& config,
                                const spec::ModelSpec& model, const MachineMemory& machine);

/// Whether an error says that memory of the host or the GPU ran out.
bool ran_out_of_memory(const std::exception& error);

/// Memory of `device` that ran out while training, distinguished from faults of the program. `divisions`:
/// those with less.
std::optional<UserError> out_of_memory(const std::exception& error, const spec::Batch& batch,
                                       at::Device device, const std::function<std::string()>& divisions = {});

}  // namespace assay::impl::run
