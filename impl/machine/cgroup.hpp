#pragma once
// What control groups (cgroup v1 and v2) leave this process of its host's memory. A container, a batch system
// or a service manager sets them; sysconf and /proc/meminfo know nothing of them.
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace assay::impl {

struct MemoryLimit {
  std::int64_t bytes = 0;  ///< that the processes of the group may have together
  std::int64_t left = 0;   ///< of these, not taken: free, or of files that the system can drop [B]
  std::string file;        ///< that states it, "/sys/fs/cgroup/job/memory.max"
};

/// The groups of this process. Files that are not there, or state no number, limit nothing.
class Cgroups {
 public:
  explicit Cgroups(const std::filesystem::path& root = "/sys/fs/cgroup",
                   std::filesystem::path proc = "/proc");

  /// The lowest limit of this process's group and of those above it, and the least that any of them leaves:
  /// memory.max and memory.high (v2), memory.limit_in_bytes (v1).
  std::optional<MemoryLimit> memory_limit() const;
  /// Processes of this group that the system has ended for want of memory, since the group is there; of the
  /// whole host where the group does not count them; nothing where neither does.
  std::optional<std::int64_t> memory_kills() const;

 private:
  struct Group {
    std::filesystem::path folder;
    int version = 2;
  };
  std::vector<Group> groups_;  ///< from this process's up to the root
  std::filesystem::path proc_;
};

}  // namespace assay::impl
