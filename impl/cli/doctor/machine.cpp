#include "impl/cli/doctor/machine.hpp"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "impl/machine/cgroup.hpp"

namespace assay::impl::cli {
namespace {

namespace fs = std::filesystem;
constexpr double kProbeSeconds = 120;  // a cold libtorch with CUDA is gigabytes of libraries to read

/// The text after "name : " of the first such line of a /proc file.
std::string proc_value(const std::string& file, const std::string& name) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    if (line.rfind(name, 0) != 0) continue;
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::size_t begin = line.find_first_not_of(" \t", colon + 1);
    return begin == std::string::npos ? "" : line.substr(begin);
  }
  return "";
}

std::int64_t memory(const std::string& name) {
  std::istringstream text(proc_value("/proc/meminfo", name));
  std::int64_t kibibytes = 0;
  text >> kibibytes;
  return kibibytes * 1024;
}

bool has_flag(const std::string& flags, const std::string& flag) {
  return (" " + flags + " ").find(" " + flag + " ") != std::string::npos;
}

/// "580.95.05" of "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.95.05  ...".
std::string driver_version() {
  std::istringstream words(proc_value("/proc/driver/nvidia/version", "NVRM version"));
  for (std::string word; words >> word;)
    if (word.find('.') != std::string::npos && word.find_first_not_of("0123456789.") == std::string::npos)
      return word;
  return "";
}

std::vector<std::string> gpu_models() {
  std::vector<std::string> out;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/proc/driver/nvidia/gpus", error))
    out.push_back(proc_value((entry.path() / "information").string(), "Model"));
  return out;
}

}  // namespace

Machine look_at_machine() {
  Machine machine;
  machine.cpu = proc_value("/proc/cpuinfo", "model name");
  machine.cores = std::thread::hardware_concurrency();
  const std::string flags = proc_value("/proc/cpuinfo", "flags");
  machine.avx2 = has_flag(flags, "avx2") && has_flag(flags, "fma");
  machine.memory_bytes = memory("MemTotal");
  machine.available_bytes = memory("MemAvailable");
  if (const auto limit = Cgroups().memory_limit()) {
    machine.memory_bytes = std::min(machine.memory_bytes, limit->bytes);
    machine.available_bytes = std::min(machine.available_bytes, limit->left);
  }
  std::error_code error;
  machine.folder = fs::current_path(error).string();
  machine.folder_writable = access(".", W_OK) == 0;
  const fs::space_info space = fs::space(".", error);
  if (!error) machine.disk_free_bytes = static_cast<std::int64_t>(space.available);
  machine.gpus = gpu_models();
  machine.driver_version = driver_version();
  machine.trainer = beside_this_program("assay-train");
  if (!machine.trainer.empty()) machine.probe = run_program({machine.trainer, "--probe"}, kProbeSeconds);
  return machine;
}

}  // namespace assay::impl::cli
