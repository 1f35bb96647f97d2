#pragma once
// Which device each rank computes on.
#include <ATen/core/Tensor.h>

#include <optional>
#include <string>
#include <vector>

#include "impl/comm/communicator.hpp"
#include "spec/config/run_config.hpp"

namespace assay::impl::run {

/// Where a rank sits: what it sees of its host.
struct Seat {
  std::string host;
  /// Identities of the GPUs that it may use, in CUDA's order. A GPU's is the same on whatever host it shows.
  std::vector<std::string> gpus;
};

/// Which GPU of its host a rank takes: the first one, which all share, is for tests
/// (impl/comm/staged_communicator.hpp).
enum class Seating { own_gpu, first_gpu };

/// The GPU of `rank`, as a place in its list; nothing: the CPU. Ranks of a host take its GPUs in turn; a rank
/// that sees one alone takes it. Errors: UserError(usage), alike on every rank, when a rank would have none
/// or one that another has taken, and cuda was asked for or there are GPUs at all.
std::optional<int> seat_gpu(const std::vector<Seat>& seats, int rank, spec::Device wanted,
                            Seating seating = Seating::own_gpu);

/// The device of this rank, of several. Collective. Errors: as seat_gpu; UserError(usage), alike on every
/// rank, where a GPU cannot be used (impl/machine/device_choice.hpp).
at::Device rank_device(spec::Device wanted, Communicator& communicator, Seating seating = Seating::own_gpu);

/// "GPU-" and the UUID of a CUDA device, as nvidia-smi prints it.
std::string gpu_uuid(int device);

}  // namespace assay::impl::run
