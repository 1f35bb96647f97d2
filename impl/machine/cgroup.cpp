#include "impl/machine/cgroup.hpp"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <utility>

namespace assay::impl {

namespace {
namespace fs = std::filesystem;

/// The number that a file holds; nothing for "max", or what v1 says in place of it.
std::optional<std::int64_t> number_in(const fs::path& file) {
  constexpr std::int64_t more_than_any = std::int64_t{1} << 60;
  std::ifstream in(file);
  std::int64_t number = 0;
  return in >> number && number < more_than_any ? std::optional(number) : std::nullopt;
}

/// Of lines of a name and a number.
std::optional<std::int64_t> number_of(const fs::path& file, const std::string& name) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string word;
    std::int64_t number = 0;
    if (words >> word >> number && word == name) return number;
  }
  return {};
}

/// Whether "cpu,memory" names it.
bool names_memory(const std::string& controllers) {
  return ("," + controllers + ",").find(",memory,") != std::string::npos;
}
}  // namespace

Cgroups::Cgroups(const fs::path& root, fs::path proc) : proc_(std::move(proc)) {
  std::ifstream lines(proc_ / "self" / "cgroup");
  for (std::string line; std::getline(lines, line);) {  // "4:memory:/job/step", "0::/job/step"
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (!controllers.empty() && !names_memory(controllers)) continue;
    const int version = controllers.empty() ? 2 : 1;
    const fs::path top = version == 1 ? root / "memory" : root;
    fs::path within = fs::path(line.substr(second + 1)).relative_path();
    // Of a group outside of the namespace nothing is mounted here but the top.
    if (std::find(within.begin(), within.end(), "..") != within.end()) within.clear();
    for (;; within = within.parent_path()) {
      groups_.push_back({within.empty() ? top : top / within, version});
      if (within.empty()) break;
    }
  }
}

std::optional<MemoryLimit> Cgroups::memory_limit() const {
  std::optional<MemoryLimit> lowest;
  for (const Group& group : groups_) {
    const bool new_names = group.version == 2;
    const std::string files = new_names ? "" : "total_";  // with the groups below it
    const fs::path state = group.folder / "memory.stat";
    const std::int64_t used =
        number_in(group.folder / (new_names ? "memory.current" : "memory.usage_in_bytes")).value_or(0) -
        number_of(state, files + "inactive_file").value_or(0) -
        number_of(state, files + "active_file").value_or(0);
    for (const char* name : {"memory.max", "memory.high", "memory.limit_in_bytes"}) {
      const auto bytes = number_in(group.folder / name);
      if (!bytes) continue;
      std::int64_t left = std::clamp<std::int64_t>(*bytes - used, 0, *bytes);
      if (lowest) left = std::min(left, lowest->left);
      if (!lowest || *bytes < lowest->bytes) lowest = {*bytes, 0, (group.folder / name).string()};
      lowest->left = left;
    }
  }
  return lowest;
}

std::optional<std::int64_t> Cgroups::memory_kills() const {
  for (const Group& group : groups_)
    if (const auto kills = number_of(
            group.folder / (group.version == 2 ? "memory.events" : "memory.oom_control"), "oom_kill"))
      return kills;
  return number_of(proc_ / "vmstat", "oom_kill");
}

}  // namespace assay::impl
