#pragma once
// Which processors and memory this process may use, and which of them are near its GPU: NUMA, as Linux
// reports it. Lists are Linux's: "0-3,8". What it does not report is empty.
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay::impl::run {

struct NumaPlacement {
  std::string processors;                     ///< that this process may run on
  std::string memory_nodes;                   ///< that its memory may come from
  std::optional<std::int64_t> gpu_node = {};  ///< of its GPU
  std::string gpu_processors = {};            ///< of that node
};

/// Of the calling thread and of `device`. Sources: proc_pid_status(5), Cpus_allowed_list and
/// Mems_allowed_list; Linux, Documentation/ABI/testing/sysfs-bus-pci, numa_node;
/// sysfs-devices-node, cpulist.
NumaPlacement numa_placement(at::Device device);

/// The same from other files: `status` in place of /proc/thread-self/status, `system` in place of /sys, `pci`
/// the address of the GPU ("0000:1b:00.0"), empty without one.
NumaPlacement read_numa_placement(const std::string& status, const std::string& system,
                                  const std::string& pci);

/// The numbers of such a list, ascending. Errors: std::invalid_argument where it is not one.
std::vector<std::int64_t> numbers_of(std::string_view list);

}  // namespace assay::impl::run
