#include "impl/parallel/mpi_communicator.hpp"

#include <ATen/ATen.h>
#include <mpi.h>

#include <algorithm>
#include <cstdlib>
#include <stdexcept>

#include "spec/error.hpp"

namespace assay::impl {

namespace {
/// Throws when an MPI call failed; `call` is its text.
void mpi_check(int status, const char* call) {
  if (status == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(status, text, &length);
  throw UserError(ExitCode::peer_lost,
                  std::string("MPI call failed: ") + call + ": " +
                      std::string(text, static_cast<std::size_t>(length)) +
                      "; a rank has probably died, look at the first message of the others");
}
#define ASSAY_MPI_CHECK(call) mpi_check(call, #call)

MPI_Datatype datatype(at::ScalarType type) {
  switch (type) {
    case at::kDouble:
      return MPI_DOUBLE;
    case at::kFloat:
      return MPI_FLOAT;
    case at::kLong:
      return MPI_INT64_T;
    default:
      throw std::invalid_argument(std::string("MPI reduces fp64, fp32 and int64, not ") + at::toString(type));
  }
}

class MpiCommunicator final : public Communicator {
 public:
  MpiCommunicator() {
    int ready = 0, provided = 0;
    ASSAY_MPI_CHECK(MPI_Initialized(&ready));
    if (!ready) {
      ASSAY_MPI_CHECK(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided));
      std::atexit([] { MPI_Finalize(); });
    }
    ASSAY_MPI_CHECK(MPI_Query_thread(&provided));
    require_thread_level(provided);
    ASSAY_MPI_CHECK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    ASSAY_MPI_CHECK(MPI_Comm_rank(MPI_COMM_WORLD, &rank_));
    ASSAY_MPI_CHECK(MPI_Comm_size(MPI_COMM_WORLD, &size_));
  }

  std::string engine() const override { return "mpi"; }
  int rank() const override { return rank_; }
  int size() const override { return size_; }

  void begin_all_reduce_sum(const at::Tensor& tensor) override {
    if (!tensor.device().is_cpu() || !tensor.is_contiguous())
      throw std::invalid_argument("MPI reduces contiguous CPU tensors");
    // MPI counts elements in an int; a flat buffer may hold more.
    constexpr std::int64_t most = std::int64_t{1} << 30;
    auto* bytes = static_cast<char*>(tensor.data_ptr());
    for (std::int64_t first = 0; first < tensor.numel(); first += most) {
      requests_.emplace_back();
      ASSAY_MPI_CHECK(MPI_Iallreduce(MPI_IN_PLACE, bytes + first * tensor.element_size(),
                                     static_cast<int>(std::min(most, tensor.numel() - first)),
                                     datatype(tensor.scalar_type()), MPI_SUM, MPI_COMM_WORLD,
                                     &requests_.back()));
    }
  }

  void wait_all() override {
    ASSAY_MPI_CHECK(MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE));
    requests_.clear();
  }

  std::vector<std::string> all_gather(const std::string& text) override {
    const int length = static_cast<int>(text.size());
    std::vector<int> lengths(static_cast<std::size_t>(size_)), offsets(static_cast<std::size_t>(size_));
    ASSAY_MPI_CHECK(MPI_Allgather(&length, 1, MPI_INT, lengths.data(), 1, MPI_INT, MPI_COMM_WORLD));
    int total = 0;
    for (std::size_t r = 0; r < lengths.size(); ++r) offsets[r] = total, total += lengths[r];
    std::string all(static_cast<std::size_t>(total), '\0');
    ASSAY_MPI_CHECK(MPI_Allgatherv(text.data(), length, MPI_CHAR, all.data(), lengths.data(), offsets.data(),
                                   MPI_CHAR, MPI_COMM_WORLD));
    std::vector<std::string> texts;
    for (std::size_t r = 0; r < lengths.size(); ++r)
      texts.push_back(all.substr(static_cast<std::size_t>(offsets[r]), static_cast<std::size_t>(lengths[r])));
    return texts;
  }

  void barrier() override { ASSAY_MPI_CHECK(MPI_Barrier(MPI_COMM_WORLD)); }

  [[noreturn]] void abort(int exit_code) override {
    MPI_Abort(MPI_COMM_WORLD, exit_code);
    std::_Exit(exit_code);
  }

 private:
  int rank_ = 0, size_ = 1;
  std::vector<MPI_Request> requests_;
};
}  // namespace

void require_thread_level(int provided) {
  // MPI orders the levels; only the trainer's thread calls MPI, beside the loader's and those of the CPU
  // loops.
  if (provided >= MPI_THREAD_FUNNELED) return;
  char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  MPI_Get_library_version(version, &length);
  const std::string whole(version, static_cast<std::size_t>(length));
  throw UserError(ExitCode::usage,
                  "this MPI library allows no threads beside the one that calls it (it provides level " +
                      std::to_string(provided) +
                      ", training needs MPI_THREAD_FUNNELED = " + std::to_string(MPI_THREAD_FUNNELED) +
                      "): " + whole.substr(0, whole.find_first_of(",\n")) +
                      "; use one that was built with thread support (Debian and Ubuntu: apt install "
                      "openmpi-bin), or train with one rank");
}

bool launched_by_mpi() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK"})
    if (std::getenv(name)) return true;
  return false;
}

std::unique_ptr<Communicator> make_mpi_communicator() { return std::make_unique<MpiCommunicator>(); }

namespace {
/// One of several processes that know nothing of each other.
void refuse_launch_without_mpi() {
  struct Launcher {
    const char *size, *rank, *name;
  };
  // A batch script of Slurm has no step: only srun sets the number of a step's tasks.
  for (const Launcher& launcher : {Launcher{"WORLD_SIZE", "RANK", "torchrun"},
                                   Launcher{"SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "srun without --mpi"}}) {
    const char* size = std::getenv(launcher.size);
    if (!size || !std::getenv(launcher.rank) || std::atoll(size) <= 1) continue;
    throw UserError(ExitCode::usage,
                    std::string(launcher.size) + "=" + size + ": started by " + launcher.name +
                        ", as one of several processes, but ranks speak MPI: use mpirun, srun "
                        "--mpi=pmix or `assay train --ranks N`");
  }
}
}  // namespace

std::unique_ptr<Communicator> make_communicator() {
  if (launched_by_mpi()) return make_mpi_communicator();
  refuse_launch_without_mpi();
  return make_self_communicator();
}

}  // namespace assay::impl
