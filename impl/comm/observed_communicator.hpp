#pragma once
// A communicator that does what another one does, while somebody observes its calls.
#include <functional>
#include <memory>
#include <optional>

#include "impl/comm/communicator.hpp"

namespace assay::impl {

enum class Collective { none, all_reduce, reduce_scatter, all_gather, words, barrier, exchange, all_to_all };

std::string to_string(Collective collective);

/// What a call begins.
struct Begun {
  Collective what = Collective::none;
  std::size_t bytes = 0;              ///< of the whole tensors, or of the text
  const at::Tensor* moved = nullptr;  ///< one of the tensors that move, on their device; null: none does
};

/// Every call goes to `inner`, through one of three hooks. Whoever observes writes the hooks.
class ObservedCommunicator : public Communicator {
 public:
  explicit ObservedCommunicator(Communicator& inner) : inner_(inner) {}  ///< `inner` lives longer
  explicit ObservedCommunicator(std::unique_ptr<Communicator> inner)
      : owned_(std::move(inner)), inner_(*owned_) {}

  std::string engine() const final { return inner_.engine(); }
  int rank() const final { return inner_.rank(); }
  int size() const final { return inner_.size(); }
  Ticket begin_all_reduce_sum(const at::Tensor& tensor) final;
  Ticket begin_reduce_scatter_sum(const at::Tensor& whole, const at::Tensor& shard) final;
  Ticket begin_all_gather(const at::Tensor& shard, const at::Tensor& whole) final;
  Ticket begin_all_reduce_max(const at::Tensor& tensor) final;
  Ticket begin_exchange(const std::vector<Message>& messages) final;
  Ticket begin_all_to_all(const at::Tensor& send, const std::vector<std::int64_t>& send_counts,
                          const at::Tensor& receive, const std::vector<std::int64_t>& receive_counts) final;
  void wait(Ticket ticket) final;
  void wait_all() final;
  void settle() final;
  at::Tensor received(Ticket ticket, const at::Tensor& tensor) final;
  std::vector<std::string> all_gather(const std::string& text) final;
  void barrier() final;
  std::unique_ptr<Communicator> group(const std::vector<std::int64_t>& ranks) final;
  std::pair<std::string, std::uint16_t> store() const final { return inner_.store(); }
  void rely_on_watch() final { inner_.rely_on_watch(); }
  [[noreturn]] void abort(int exit_code) final;

 protected:
  /// Makes `call`, which begins a collective: its ticket, or 0 where the call is complete on return.
  virtual Ticket around_begin(const Begun& begun, const std::function<Ticket()>& call) = 0;
  /// Makes `call`, which waits for this collective, or for several.
  virtual void around_wait(std::optional<Ticket> ticket, const std::function<void()>& call) = 0;
  /// A group of `inner`, observed in the same way.
  virtual std::unique_ptr<Communicator> observe(std::unique_ptr<Communicator> group) = 0;

 private:
  const std::unique_ptr<Communicator> owned_;
  Communicator& inner_;
};

}  // namespace assay::impl
