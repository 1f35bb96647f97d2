#pragma once
// Processes of this machine. An id is used again; an id with the time of its start is not.
#include <cstdint>
#include <string>

namespace assay::impl {

struct Process {
  std::string space;  ///< host, boot and PID namespace: in equal spaces equal ids mean the same process
  int id = 0;
  std::uint64_t start = 0;  ///< since boot, in clock ticks; 0: /proc does not say

  bool operator==(const Process&) const = default;
};

Process process_of(int id);
Process this_process();

/// Whether it has not ended: it may be stopped. True where /proc does not say. Domain: a process of this
/// process's space.
bool is_alive(const Process& process);

/// Ends it by SIGKILL, even where it is stopped; not the calling one. Returns whether it was sent. Domain: as
/// is_alive.
bool end_process(const Process& process);

}  // namespace assay::impl
