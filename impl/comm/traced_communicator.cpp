#include "impl/comm/traced_communicator.hpp"

#include <stdexcept>
#include <unordered_map>

#include "impl/comm/observed_communicator.hpp"
#include "impl/metrics/op_times.hpp"

namespace assay::impl {
namespace {

using metrics::CollectiveOp;
using metrics::CollectivePart;
using metrics::OpScope;

CollectiveOp op_of(Collective collective) {
  switch (collective) {
    case Collective::all_reduce:
      return CollectiveOp::all_reduce;
    case Collective::reduce_scatter:
      return CollectiveOp::reduce_scatter;
    case Collective::all_gather:
      return CollectiveOp::all_gather;
    case Collective::exchange:
      return CollectiveOp::exchange;
    case Collective::all_to_all:
      return CollectiveOp::all_to_all;
    case Collective::words:
    case Collective::barrier:
      return CollectiveOp::words;
    case Collective::none:
      break;
  }
  throw std::logic_error("a call that begins no collective has no op");
}

class TracedCommunicator final : public ObservedCommunicator {
 public:
  using ObservedCommunicator::ObservedCommunicator;

 protected:
  Ticket around_begin(const Begun& begun, const std::function<Ticket()>& call) override {
    const CollectiveOp op = op_of(begun.what);
    const OpScope scope(op, CollectivePart::begin);
    const Ticket ticket = call();
    if (metrics::tracing::on && op != CollectiveOp::words) {  // of one thread of the process alone
      begun_[ticket] = op;
      last_ = ticket;
    }
    return ticket;
  }
  void around_wait(std::optional<Ticket> ticket, const std::function<void()>& call) override {
    const OpScope scope(kind_of(ticket.value_or(last_)), CollectivePart::wait);
    call();
  }
  std::unique_ptr<Communicator> observe(std::unique_ptr<Communicator> group) override {
    return std::make_unique<TracedCommunicator>(std::move(group));
  }

 private:
  /// What is not known began before the trace.
  CollectiveOp kind_of(Ticket ticket) const {
    const auto found = metrics::tracing::on ? begun_.find(ticket) : begun_.end();
    return found == begun_.end() ? CollectiveOp::all_reduce : found->second;
  }

  std::unordered_map<Ticket, CollectiveOp> begun_;
  Ticket last_ = 0;
};

}  // namespace

std::unique_ptr<Communicator> make_traced_communicator(Communicator& inner) {
  return std::make_unique<TracedCommunicator>(inner);
}

}  // namespace assay::impl
