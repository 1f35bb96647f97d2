#include "impl/machine/numa.hpp"

#include <ATen/cuda/CUDAContext.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <fstream>
#include <stdexcept>

namespace assay::impl::run {

namespace {

/// Of a line "KEY:\tVALUE"; empty where there is none.
std::string status_value(const std::string& path, std::string_view key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(key) || line.substr(key.size(), 1) != ":") continue;
    const auto begin = line.find_first_not_of(" \t", key.size() + 1);
    return begin == std::string::npos ? std::string() : line.substr(begin);
  }
  return {};
}

std::string first_line(const std::string& path) {
  std::string line;
  std::ifstream file(path);
  std::getline(file, line);
  return line;
}

std::int64_t number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0)
    throw std::invalid_argument("no list of processors: " + std::string(text));
  return value;
}

/// "0000:1b:00.0"
std::string pci_address(at::Device device) {
  if (!device.is_cuda()) return {};
  const cudaDeviceProp* properties = at::cuda::getDeviceProperties(device.index());
  char text[32];
  std::snprintf(text, sizeof text, "%04x:%02x:%02x.0", static_cast<unsigned>(properties->pciDomainID),
                static_cast<unsigned>(properties->pciBusID), static_cast<unsigned>(properties->pciDeviceID));
  return text;
}

}  // namespace

NumaPlacement numa_placement(at::Device device) {
  return read_numa_placement("/proc/thread-self/status", "/sys", pci_address(device));
}

NumaPlacement read_numa_placement(const std::string& status, const std::string& system,
                                  const std::string& pci) {
  NumaPlacement placement{.processors = status_value(status, "Cpus_allowed_list"),
                          .memory_nodes = status_value(status, "Mems_allowed_list")};
  if (pci.empty()) return placement;
  // -1: the firmware does not say; hosts of one node and most virtual machines.
  const std::string node = first_line(system + "/bus/pci/devices/" + pci + "/numa_node");
  if (node.empty() || node.starts_with('-')) return placement;
  placement.gpu_node = number(node);
  placement.gpu_processors = first_line(system + "/devices/system/node/node" + node + "/cpulist");
  return placement;
}

std::vector<std::int64_t> numbers_of(std::string_view list) {
  std::vector<std::int64_t> all;
  while (!list.empty()) {
    const auto comma = list.find(',');
    const std::string_view part = list.substr(0, comma);
    const auto dash = part.find('-');
    const std::int64_t first = number(part.substr(0, dash)),
                       last = dash == std::string_view::npos ? first : number(part.substr(dash + 1));
    for (std::int64_t n = first; n <= last; ++n) all.push_back(n);
    list = comma == std::string_view::npos ? std::string_view() : list.substr(comma + 1);
  }
  std::sort(all.begin(), all.end());
  return all;
}

}  // namespace assay::impl::run
