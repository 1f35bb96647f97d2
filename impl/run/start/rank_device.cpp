#include "impl/run/start/rank_device.hpp"

#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAFunctions.h>

#include <map>
#include <sstream>
#include <utility>

#include "impl/machine/architectures.hpp"
#include "impl/machine/device_choice.hpp"
#include "impl/machine/host.hpp"
#include "spec/error.hpp"

namespace assay::impl::run {

namespace {
/// Place of the rank among those of its host, and their number.
std::pair<int, int> place_on_host(const std::vector<Seat>& seats, std::size_t rank) {
  int place = 0, number = 0;
  for (std::size_t r = 0; r < seats.size(); ++r) {
    if (seats[r].host != seats[rank].host) continue;
    place += r < rank;
    ++number;
  }
  return {place, number};
}

std::optional<int> gpu_of(const std::vector<Seat>& seats, std::size_t rank, Seating seating) {
  const auto gpus = static_cast<int>(seats[rank].gpus.size());
  const int place = seating == Seating::first_gpu ? 0 : place_on_host(seats, rank).first;
  if (place < gpus) return place;
  // A launcher may show each rank a GPU of its own; whether it is one is for the caller to see.
  if (gpus == 1) return 0;
  return {};
}

[[noreturn]] void refuse_seats(const std::string& what) {
  throw AgreedError(ExitCode::usage,
                    what +
                        "; start as many ranks on each host as it has GPUs (CUDA_VISIBLE_DEVICES "
                        "hides some), or set compute.device=cpu");
}
}  // namespace

std::optional<int> seat_gpu(const std::vector<Seat>& seats, int rank, spec::Device wanted, Seating seating) {
  if (wanted == spec::Device::cpu) return {};
  bool any = false;
  for (const Seat& seat : seats) any = any || !seat.gpus.empty();
  if (!any && wanted == spec::Device::automatic) return {};
  if (!any)
    throw AgreedError(ExitCode::usage,
                      "compute.device=cuda, but no usable NVIDIA GPU was found; `assay doctor` says what is "
                      "missing, compute.device=cpu trains on the CPU");
  // A GPU is one, whatever its host is called: containers of one machine have names of their own.
  std::map<std::string, std::size_t> taken;
  for (std::size_t r = 0; r < seats.size(); ++r) {
    const auto gpu = gpu_of(seats, r, seating);
    const auto& seat = seats[r];
    const std::string counts = "host " + seat.host + " has " + std::to_string(seat.gpus.size()) +
                               " usable GPUs for " + std::to_string(place_on_host(seats, r).second) +
                               " ranks";
    if (!gpu) refuse_seats("rank " + std::to_string(r) + " has no GPU: " + counts);
    if (seating == Seating::first_gpu) continue;
    const std::string& identity = seat.gpus[static_cast<std::size_t>(*gpu)];
    const auto [other, is_free] = taken.emplace(identity, r);
    if (is_free) continue;
    const std::string& first = seats[other->second].host;
    refuse_seats("ranks " + std::to_string(other->second) + " and " + std::to_string(r) +
                 " would share the GPU " + identity + ": " +
                 (first == seat.host ? counts
                                     : "hosts " + first + " and " + seat.host +
                                           " both show it, as containers of one machine may"));
  }
  return gpu_of(seats, static_cast<std::size_t>(rank), seating);
}

std::string gpu_uuid(int device) {
  const cudaDeviceProp* properties = at::cuda::getDeviceProperties(static_cast<c10::DeviceIndex>(device));
  std::string uuid = "GPU-";
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) uuid += "-";
    const auto byte = static_cast<unsigned char>(properties->uuid.bytes[i]);
    uuid += "0123456789abcdef"[byte >> 4];
    uuid += "0123456789abcdef"[byte & 15];
  }
  return uuid;
}

at::Device rank_device(spec::Device wanted, Communicator& communicator, Seating seating) {
  if (wanted == spec::Device::cuda && compiled_architectures().empty())
    throw AgreedError(ExitCode::usage, "compute.device=cuda, but " + gpu_fault({.kernels = false}));
  std::string mine = host_name();
  if (wanted != spec::Device::cpu && !compiled_architectures().empty())
    for (int device = 0; device < c10::cuda::device_count(); ++device) mine += " " + gpu_uuid(device);
  std::vector<Seat> seats;
  for (const std::string& text : communicator.all_gather(mine)) {
    std::istringstream words(text);
    Seat seat;
    words >> seat.host;
    for (std::string gpu; words >> gpu;) seat.gpus.push_back(gpu);
    seats.push_back(std::move(seat));
  }
  const auto gpu = seat_gpu(seats, communicator.rank(), wanted, seating);
  if (gpu) {
    const std::string fault = gpu_fault(look_at_gpu(*gpu));
    const std::vector<std::string> faults = communicator.all_gather(fault);
    for (std::size_t r = 0; r < faults.size(); ++r)
      if (!faults[r].empty())
        throw AgreedError(ExitCode::usage, "rank " + std::to_string(r) + " on host " + seats[r].host +
                                               " cannot use its GPU: " + faults[r]);
    return at::Device(at::kCUDA, static_cast<c10::DeviceIndex>(*gpu));
  }
  return at::kCPU;
}

}  // namespace assay::impl::run
