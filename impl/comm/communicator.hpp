#pragma once
// Communication between ranks: one interface over an existing engine. `self` for one rank, Gloo on CPUs, NCCL
// on GPUs.
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "spec/error.hpp"
#include "spec/parallel/collective.hpp"

namespace assay::impl {

/// An error that every rank throws alike, after the ranks have exchanged it. One of them prints it for all.
class AgreedError : public UserError {
 public:
  using UserError::UserError;
};

/// A tensor that goes to a rank of the group, or comes from it.
struct Message {
  at::Tensor tensor;
  int peer;
};
struct Messages {
  std::vector<Message> sends{}, receives{};
};

enum class Reduction { sum, max };

/// A collective and what it moves. Fields that it does not name stay as they are here.
struct Request {
  spec::Collective collective;
  at::Tensor input{}, output{};
  Reduction reduction = Reduction::sum;           ///< of an all_reduce
  std::vector<std::int64_t> sent{}, received{};   ///< all_to_all: rows to, and from, each rank
  Messages messages{};                            ///< send, receive, exchange
  std::string text{};                             ///< texts: this rank's
  std::vector<std::string>* all_texts = nullptr;  ///< texts: where all go, before `begin` returns
};

/// Every tensor of a request.
std::vector<at::Tensor> tensors_of(const Request& request);
/// The messages of a request, of an all_to_all as well, that hold something.
Messages messages_of(const Request& request);
/// Copies the messages of rank `rank` to itself, which are then no more among them. Errors:
/// std::invalid_argument where it sends itself more or fewer than it receives.
void deliver_own(Messages& messages, int rank);
/// Bytes of a request, counted as its row of spec::collective_table says.
std::int64_t bytes_of(const Request& request);
/// Refuses what Communicator::begin does not take from rank `rank` of `size`. Errors: std::invalid_argument.
void check(const Request& request, int rank, int size);

/// Collectives of one group of ranks. All ranks of the group begin the same ones in the same order, with the
/// same shapes and dtypes. Tensors are contiguous; they must live, and nothing else may touch them, until
/// their ticket has been waited for. Errors of every call: UserError(peer_lost) where the engine reports that
/// a rank is gone.
class Communicator {
 public:
  /// Names a collective that has begun. Collectives complete in the order in which they begin.
  using Ticket = std::int64_t;

  virtual ~Communicator() = default;

  virtual std::string engine() const = 0;  ///< "self", "gloo", "nccl", "staged (...)"
  virtual int rank() const = 0;            ///< 0..size-1
  virtual int size() const = 0;

  /// The helpers below say what each collective does. Errors: std::invalid_argument for what an engine does
  /// not take.
  virtual Ticket begin(const Request& request) = 0;

  /// tensor = sum over ranks of tensor, in place. fp64, fp32, bf16, int64.
  Ticket begin_all_reduce_sum(const at::Tensor& tensor) {
    return begin({spec::Collective::all_reduce, tensor, tensor});
  }
  /// tensor = the largest over ranks, entry by entry, in place. A NaN on one rank is a NaN on all. Types as
  /// begin_all_reduce_sum.
  Ticket begin_all_reduce_max(const at::Tensor& tensor) {
    return begin({spec::Collective::all_reduce, tensor, tensor, Reduction::max});
  }
  /// shard = this rank's part of the sum over ranks of whole. whole [size * n] is `size` parts in the order
  /// of the ranks, shard [n]; shard may be this rank's part of whole, otherwise the two do not overlap.
  /// Afterwards whole is undefined outside of such a shard. Types as begin_all_reduce_sum.
  Ticket begin_reduce_scatter_sum(const at::Tensor& whole, const at::Tensor& shard) {
    return begin({spec::Collective::reduce_scatter, whole, shard});
  }
  /// whole = the shards of all ranks in their order, bit for bit. Shapes and overlap as for
  /// begin_reduce_scatter_sum; any dtype.
  Ticket begin_all_gather(const at::Tensor& shard, const at::Tensor& whole) {
    return begin({spec::Collective::all_gather, shard, whole});
  }
  /// Rows (of dimension 0) from every rank to every rank: sent[r] rows of input go to rank r, in the order of
  /// the ranks, and received[r] rows of output come from rank r. What rank a sends to rank b is what b
  /// receives from a, 0 allowed. The two tensors do not overlap; any dtype.
  Ticket begin_all_to_all(const at::Tensor& input, const std::vector<std::int64_t>& sent,
                          const at::Tensor& output, const std::vector<std::int64_t>& received) {
    return begin({spec::Collective::all_to_all, input, output, Reduction::sum, sent, received});
  }
  /// Messages between pairs of ranks; only the ranks at their ends call. Both ends have the same size and
  /// dtype; any dtype, size 0 too. A peer may be this rank. Messages from one rank to another arrive in the
  /// order in which they are given. The messages of one call travel together: two ranks that send to each
  /// other give both messages in one call. In two calls a GPU ends the first before it starts the second, and
  /// if both ranks send first, neither goes on.
  Ticket begin_exchange(Messages messages) {
    return begin({.collective = spec::Collective::exchange, .messages = std::move(messages)});
  }
  /// An exchange of one message.
  Ticket begin_send(const at::Tensor& tensor, int to) {
    return begin({.collective = spec::Collective::send, .messages = {.sends = {{tensor, to}}}});
  }
  Ticket begin_receive(const at::Tensor& tensor, int from) {
    return begin({.collective = spec::Collective::receive, .messages = {.receives = {{tensor, from}}}});
  }

  /// The calling thread waits for the collective. On a GPU its current stream waits, and the thread does not.
  virtual void wait(Ticket ticket) = 0;
  /// As `wait` for every collective begun so far.
  virtual void wait_all() = 0;
  /// The calling thread waits for its current stream, and for the collectives that the stream waits for.
  /// Throws where a rank is gone, or stays away for longer than the engine's patience.
  virtual void settle() {}
  /// `tensor` on the host, once the collective of `ticket` that fills it is done; later use on a GPU still
  /// has to wait for the ticket. The calling thread waits. NCCL's current stream does not, so that what was
  /// given to it runs meanwhile. Throws as `settle`.
  virtual at::Tensor received(Ticket ticket, const at::Tensor& tensor) {
    wait(ticket);
    settle();
    return tensor.cpu();
  }

  /// In place, complete on return as by `wait`.
  void all_reduce_sum(const at::Tensor& tensor) { wait(begin_all_reduce_sum(tensor)); }
  void all_reduce_max(const at::Tensor& tensor) { wait(begin_all_reduce_max(tensor)); }

  /// The text of every rank, in rank order, on every rank.
  std::vector<std::string> all_gather(const std::string& text) {
    std::vector<std::string> all;
    begin({.collective = spec::Collective::texts, .text = text, .all_texts = &all});
    return all;
  }

  void barrier() { wait(begin({.collective = spec::Collective::barrier})); }

  /// The communicator of some ranks of this one, in the order of their ranks there. Every rank of this
  /// communicator calls at the same time with the group that it belongs to. Lives no longer than this one.
  virtual std::unique_ptr<Communicator> group(const std::vector<std::int64_t>& ranks) = 0;

  /// Host and port of the key-value store in which the ranks met; no host of `self`.
  virtual std::pair<std::string, std::uint16_t> store() const { return {}; }

  /// From here on a watch ends this process where a rank is lost (impl/health), so the host waits for a
  /// living rank without a limit.
  virtual void rely_on_watch() {}

  /// Ends this process at once with this exit code: it cannot go on alone. The watches of the other ranks, or
  /// the launcher, end those.
  [[noreturn]] virtual void abort(int exit_code) = 0;
};

std::unique_ptr<Communicator> make_self_communicator();

}  // namespace assay::impl
