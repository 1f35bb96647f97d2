#pragma once
// What ranks say to each other. One interface, an existing engine under it: `self` for one rank, MPI on CPUs,
// NCCL on GPUs.
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "spec/error.hpp"

namespace assay::impl {

/// An error that every rank throws alike, after they have exchanged what is wrong: one of them says so
/// for all.
class AgreedError : public UserError {
 public:
  using UserError::UserError;
};

/// Collectives of one group of ranks. All ranks of the group begin the same ones in the same order, with the
/// same shapes and dtypes. Tensors are contiguous; they may not be touched, and must live, until their ticket
/// was waited for. Errors of every call: UserError(peer_lost) where the engine reports that a rank is gone.
class Communicator {
 public:
  /// Of one collective that was begun. Collectives complete in the order in which they begin; gathers by
  /// copies have an order of their own, and so have reduce_scatters by copies.
  using Ticket = std::int64_t;

  virtual ~Communicator() = default;

  virtual std::string engine() const = 0;  ///< "self", "mpi", "store", "nccl"
  virtual int rank() const = 0;            ///< 0..size-1
  virtual int size() const = 0;

  /// tensor = sum over ranks of tensor, in place. fp64, fp32, bf16, int64.
  virtual Ticket begin_all_reduce_sum(const at::Tensor& tensor) = 0;
  /// shard = this rank's part of the sum over ranks of whole. whole [size * n] is `size` parts in the order
  /// of the ranks, shard [n]; shard may be this rank's part of whole, otherwise the two are apart. What is in
  /// whole afterwards, but for such a shard, is not defined. Types as begin_all_reduce_sum.
  virtual Ticket begin_reduce_scatter_sum(const at::Tensor& whole, const at::Tensor& shard) = 0;
  /// whole = the shards of all ranks in their order, bit for bit. Shapes and overlap as above; any dtype.
  virtual Ticket begin_all_gather(const at::Tensor& shard, const at::Tensor& whole) = 0;

  /// While the handle lives, gathers of shards that lie in `memory` are copies by the GPUs' copy engines,
  /// which take no SM from what is computed beside them. Every rank calls at the same time, with
  /// as many bytes. A shard in place in its whole is in place on every rank, another one at the same
  /// offset of each rank's memory; `whole` is any memory. The handle outlives neither this nor `memory`, and
  /// no rank's memory goes back to its device before all ranks have ended their handles. Null for one rank,
  /// which gathers nothing. Errors: AgreedError(usage) with the reason where ranks have no GPUs, or these
  /// cannot reach one another's memory.
  virtual std::shared_ptr<void> gather_by_copies(const at::Tensor& memory);
  /// All-gathers of tensors that copy engines have done since the start; all others are the engine's.
  virtual std::int64_t gathers_by_copies() const { return 0; }
  /// The same for reduce_scatters of wholes that lie in `memory`, at the same offset of each rank's: each
  /// rank copies the others' parts of its shard by its copy engines to `staging`, one behind the other, and
  /// adds them up in the order of the ranks, bf16 in fp32 and rounded once. `staging`: of the same device,
  /// (size - 1) shards of the largest whole at least; held with the handle; nobody else touches it. fp64,
  /// fp32, bf16.
  virtual std::shared_ptr<void> scatter_by_copies(const at::Tensor& memory, const at::Tensor& staging);
  /// Reduce_scatters of tensors whose parts copy engines have brought since the start.
  virtual std::int64_t scatters_by_copies() const { return 0; }

  /// What the calling thread (on a GPU: its current stream) does next comes after the collective. On a GPU
  /// the thread itself does not wait.
  virtual void wait(Ticket ticket) = 0;
  /// As `wait` for every collective begun so far.
  virtual void wait_all() = 0;
  /// The calling thread waits for what it has given to its current stream, and for the collectives that this
  /// was made to wait for. A rank that is gone, or stays away for longer than the engine's patience, is an
  /// error here.
  virtual void settle() {}

  /// In place, complete on return as by `wait`.
  void all_reduce_sum(const at::Tensor& tensor) { wait(begin_all_reduce_sum(tensor)); }

  /// The text of every rank, in rank order, on every rank.
  virtual std::vector<std::string> all_gather(const std::string& text) = 0;

  virtual void barrier() = 0;

  /// The communicator of some ranks of this one, given in the order that they have there. Every rank of this
  /// communicator calls at the same time with the group that it belongs to. Lives no longer than this one.
  virtual std::unique_ptr<Communicator> group(const std::vector<std::int64_t>& ranks) = 0;

  /// From here on a watch ends this process where a rank is lost (impl/health): the host waits for a rank
  /// that is alive for as long as that takes.
  virtual void rely_on_watch() {}

  /// Ends the whole job at once with this exit code, other ranks included. For a rank that cannot go on
  /// alone.
  [[noreturn]] virtual void abort(int exit_code) = 0;
};

std::unique_ptr<Communicator> make_self_communicator();

/// Refuses tensors that are not what begin_reduce_scatter_sum and begin_all_gather take, with `size` ranks of
/// which this is `rank`. Returns whether shard is this rank's part of whole. Errors: std::invalid_argument.
bool check_parts(const at::Tensor& whole, const at::Tensor& shard, int rank, int size);

}  // namespace assay::impl
