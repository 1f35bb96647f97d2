#pragma once
// What `assay doctor` looks at and what it makes of it.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "impl/cli/program.hpp"

namespace assay::impl::cli {

/// Facts of this machine; empty or 0 where there is nothing.
struct Machine {
  std::string cpu;
  std::int64_t cores = 0;
  bool avx2 = false;  ///< with FMA: what the trainer's CPU loops are compiled for
  std::int64_t memory_bytes = 0, available_bytes = 0;
  std::string folder;  ///< the current one, where runs/ is made
  bool folder_writable = false;
  std::int64_t disk_free_bytes = 0;
  std::vector<std::string> gpus;  ///< models by the driver's list
  std::string driver_version;     ///< of the NVIDIA kernel driver
  std::string trainer;            ///< path of assay-train
  std::optional<Outcome> probe;   ///< of `assay-train --probe`, when there is a trainer
};

/// Reads /proc, the file system and PATH; runs the trainer's probe.
Machine look_at_machine();

enum class Status { ok, warn, fail };

struct Check {
  std::string name;
  Status status = Status::ok;
  std::string found;
  std::string fix;  ///< empty when ok
};

/// One check per subject, a pure function. FAIL: training cannot start. WARN: something will be slow or
/// unavailable.
std::vector<Check> examine(const Machine& machine);

}  // namespace assay::impl::cli
