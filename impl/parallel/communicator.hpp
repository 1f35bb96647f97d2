#pragma once
// What ranks say to each other. One interface, an existing engine under it: `self` for one rank, MPI on CPUs.
#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

namespace assay::impl {

class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual std::string engine() const = 0;  ///< "self", "mpi"
  virtual int rank() const = 0;            ///< 0..size-1
  virtual int size() const = 0;

  /// Starts tensor = sum over ranks of tensor, in place. Every rank calls in the same order with the same
  /// shape and dtype (fp64, fp32, int64; contiguous). The tensor may not be touched until `wait_all`.
  virtual void begin_all_reduce_sum(const at::Tensor& tensor) = 0;
  /// Completes every reduction begun so far.
  virtual void wait_all() = 0;

  /// In place, complete on return.
  void all_reduce_sum(const at::Tensor& tensor) {
    begin_all_reduce_sum(tensor);
    wait_all();
  }

  /// The text of every rank, in rank order, on every rank.
  virtual std::vector<std::string> all_gather(const std::string& text) = 0;

  virtual void barrier() = 0;

  /// Ends the whole job at once with this exit code, other ranks included. For a rank that cannot go on
  /// alone.
  [[noreturn]] virtual void abort(int exit_code) = 0;
};

/// The communicator of the launch this process was started by: MPI under mpirun or srun with PMI or PMIx
/// (their environment is present), else `self`. Errors: UserError(usage) when the environment counts several
/// processes and none of it is MPI's (torchrun; srun without PMI): each would train the whole run alone.
std::unique_ptr<Communicator> make_communicator();

std::unique_ptr<Communicator> make_self_communicator();

}  // namespace assay::impl
