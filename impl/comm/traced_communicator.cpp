#include "impl/comm/traced_communicator.hpp"

#include <cstdlib>
#include <unordered_map>

#include "impl/metrics/op_times.hpp"

namespace assay::impl {
namespace {

using metrics::CollectiveOp;
using metrics::CollectivePart;
using metrics::OpScope;

class TracedCommunicator final : public Communicator {
 public:
  explicit TracedCommunicator(Communicator& inner) : inner_(inner) {}
  explicit TracedCommunicator(std::unique_ptr<Communicator> inner)
      : owned_(std::move(inner)), inner_(*owned_) {}

  std::string engine() const override { return inner_.engine(); }
  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }

  Ticket begin_all_reduce_sum(const at::Tensor& tensor) override {
    return begin(CollectiveOp::all_reduce, [&] { return inner_.begin_all_reduce_sum(tensor); });
  }
  Ticket begin_all_reduce_max(const at::Tensor& tensor) override {
    return begin(CollectiveOp::all_reduce, [&] { return inner_.begin_all_reduce_max(tensor); });
  }
  Ticket begin_reduce_scatter_sum(const at::Tensor& whole, const at::Tensor& shard) override {
    return begin(CollectiveOp::reduce_scatter, [&] { return inner_.begin_reduce_scatter_sum(whole, shard); });
  }
  Ticket begin_all_gather(const at::Tensor& shard, const at::Tensor& whole) override {
    return begin(CollectiveOp::all_gather, [&] { return inner_.begin_all_gather(shard, whole); });
  }
  Ticket begin_exchange(const std::vector<Message>& messages) override {
    return begin(CollectiveOp::exchange, [&] { return inner_.begin_exchange(messages); });
  }
  Ticket begin_all_to_all(const at::Tensor& send, const std::vector<std::int64_t>& send_counts,
                          const at::Tensor& receive,
                          const std::vector<std::int64_t>& receive_counts) override {
    return begin(CollectiveOp::all_to_all,
                 [&] { return inner_.begin_all_to_all(send, send_counts, receive, receive_counts); });
  }
  void wait(Ticket ticket) override {
    const OpScope scope(kind_of(ticket), CollectivePart::wait);
    inner_.wait(ticket);
  }
  void wait_all() override {
    const OpScope scope(kind_of(last_), CollectivePart::wait);
    inner_.wait_all();
  }
  void settle() override {
    const OpScope scope(kind_of(last_), CollectivePart::wait);
    inner_.settle();
  }
  at::Tensor received(Ticket ticket, const at::Tensor& tensor) override {
    const OpScope scope(kind_of(ticket), CollectivePart::wait);
    return inner_.received(ticket, tensor);
  }
  std::vector<std::string> all_gather(const std::string& text) override {
    const OpScope scope(CollectiveOp::words, CollectivePart::begin);
    return inner_.all_gather(text);
  }
  void barrier() override {
    const OpScope scope(CollectiveOp::words, CollectivePart::begin);
    inner_.barrier();
  }
  std::unique_ptr<Communicator> group(const std::vector<std::int64_t>& ranks) override {
    return std::make_unique<TracedCommunicator>(inner_.group(ranks));
  }
  std::pair<std::string, std::uint16_t> store() const override { return inner_.store(); }
  void rely_on_watch() override { inner_.rely_on_watch(); }
  [[noreturn]] void abort(int exit_code) override {
    inner_.abort(exit_code);
    std::_Exit(exit_code);
  }

 private:
  template <class Call>
  Ticket begin(CollectiveOp op, const Call& call) {
    const OpScope scope(op, CollectivePart::begin);
    const Ticket ticket = call();
    if (metrics::tracing::on) {  // of one thread of the process alone
      begun_[ticket] = op;
      last_ = ticket;
    }
    return ticket;
  }
  /// What is not known began before the trace.
  CollectiveOp kind_of(Ticket ticket) {
    if (!metrics::tracing::on) return CollectiveOp::all_reduce;
    const auto found = begun_.find(ticket);
    if (found == begun_.end()) return CollectiveOp::all_reduce;
    return found->second;
  }

  std::unique_ptr<Communicator> owned_;
  Communicator& inner_;
  std::unordered_map<Ticket, CollectiveOp> begun_;
  Ticket last_ = 0;
};

}  // namespace

std::unique_ptr<Communicator> make_traced_communicator(Communicator& inner) {
  return std::make_unique<TracedCommunicator>(inner);
}

}  // namespace assay::impl
