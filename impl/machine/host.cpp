#include "impl/machine/host.hpp"

#include <ATen/Context.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <cuda_runtime_api.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>
#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace assay::impl::run {

std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const auto colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

std::string operating_system() {
  utsname names = {};
  return uname(&names) == 0 ? std::string(names.sysname) + " " + names.release : "unknown";
}

MemoryOfHost memory_of_host(const Cgroups& groups) {
  const std::int64_t all = static_cast<std::int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  const auto limit = groups.memory_limit();
  if (limit && limit->bytes < all) return {limit->bytes, limit->left, limit->file};
  return {all, all, ""};
}

std::int64_t host_memory() { return memory_of_host().bytes; }

std::int64_t available_host_memory(const Cgroups& groups) {
  const auto limit = groups.memory_limit();
  const std::int64_t left = limit ? limit->left : std::numeric_limits<std::int64_t>::max();
  std::ifstream file("/proc/meminfo");
  std::string name;
  for (std::int64_t kib = 0; file >> name >> kib;
       file.ignore(std::numeric_limits<std::streamsize>::max(), '\n'))
    if (name == "MemAvailable:") return std::min(left, kib * 1024);
  return std::min(left, host_memory());
}

std::int64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::int64_t total_pages = 0, resident_pages = 0;
  file >> total_pages >> resident_pages;
  return resident_pages * sysconf(_SC_PAGESIZE);
}

namespace {
constexpr auto all_pools = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);

c10::CachingAllocator::Stat allocated(at::Device device) {
  return c10::cuda::CUDACachingAllocator::getDeviceStats(device.index()).allocated_bytes[all_pools];
}
}  // namespace

std::int64_t device_peak_bytes(at::Device device) { return device.is_cuda() ? allocated(device).peak : 0; }

std::int64_t device_allocated_bytes(at::Device device) {
  return device.is_cuda() ? allocated(device).current : 0;
}

std::int64_t device_memory(at::Device device) {
  if (!device.is_cuda()) return host_memory();
  return static_cast<std::int64_t>(at::cuda::getDeviceProperties(device.index())->totalGlobalMem);
}

std::int64_t device_free_memory(at::Device device) {
  at::globalContext().lazyInitDevice(at::kCUDA);  // the caching allocator begins with it
  const c10::cuda::CUDAGuard guard(device);
  std::size_t free = 0, total = 0;
  C10_CUDA_CHECK(cudaMemGetInfo(&free, &total));
  const auto held = c10::cuda::CUDACachingAllocator::getDeviceStats(device.index());
  return static_cast<std::int64_t>(free) + held.reserved_bytes[all_pools].current -
         held.allocated_bytes[all_pools].current;
}

void keep_freed_memory() {
#ifdef __GLIBC__
  mallopt(M_MMAP_THRESHOLD, 32 << 20);  // the largest that glibc accepts
  mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
#endif
}

}  // namespace assay::impl::run
