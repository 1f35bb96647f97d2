#pragma once
// What the record says about the machine.
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

#include "impl/machine/cgroup.hpp"
#include "impl/machine/host_name.hpp"

namespace assay::impl::run {

using impl::host_name;
/// As in /proc/cpuinfo "model name"; "unknown" where there is none.
std::string cpu_model();
std::string operating_system();  ///< kernel name and release
/// Memory that processes of this host, or of this process's cgroup, may have together.
struct MemoryOfHost {
  std::int64_t bytes = 0;
  std::int64_t left = 0;  ///< of a cgroup's limit, what its processes do not have yet; else `bytes`
  std::string limit;      ///< the cgroup's file that states it; empty: the host has no more
};
MemoryOfHost memory_of_host(const Cgroups& groups = Cgroups());
std::int64_t host_memory();  ///< its bytes
/// Memory of the host that new tensors may take, by /proc/meminfo and the cgroup: what is free, and what the
/// system would give back of its caches; all of it where the system does not say [B].
std::int64_t available_host_memory(const Cgroups& groups = Cgroups());
/// Resident memory of this process [B].
std::int64_t resident_bytes();

/// Most memory that tensors took on the GPU since the arena of steps was reserved
/// (impl/params/step_arena.hpp), or else since the start [B]; 0 on the CPU.
std::int64_t device_peak_bytes(at::Device device);

/// Memory that tensors take on the GPU now [B]; 0 on the CPU.
std::int64_t device_allocated_bytes(at::Device device);

/// Memory of `device`: of the GPU in all, or of the host. [B]
std::int64_t device_memory(at::Device device);

/// Memory of the GPU that tensors may take: what no process has, and what the caching allocator holds unused.
/// [B] Domain: a GPU.
std::int64_t device_free_memory(at::Device device);

/// Keeps memory that is freed by a step for the next one instead of giving it back to the system: a step
/// allocates the same tensors again and again, and fresh pages cost a fault each. glibc only; elsewhere does
/// nothing.
void keep_freed_memory();

}  // namespace assay::impl::run
