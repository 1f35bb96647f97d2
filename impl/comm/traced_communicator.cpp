#include "impl/comm/traced_communicator.hpp"

#include <unordered_map>

#include "impl/comm/observed_communicator.hpp"
#include "impl/metrics/op_times.hpp"

namespace assay::impl {
namespace {

using metrics::CollectivePart;
using metrics::OpScope;
using spec::Collective;

class TracedCommunicator final : public ObservedCommunicator {
 public:
  using ObservedCommunicator::ObservedCommunicator;

  Ticket begin(const Request& request) override {
    const OpScope scope(request.collective, CollectivePart::begin);
    const Ticket ticket = ObservedCommunicator::begin(request);
    if (metrics::tracing::on && ticket != 0 &&
        request.collective != Collective::texts) {  // of one thread of the process alone
      begun_[ticket] = request.collective;
      last_ = ticket;
    }
    return ticket;
  }

 protected:
  void around_wait(std::optional<Ticket> ticket, const std::function<void()>& call) override {
    const OpScope scope(kind_of(ticket.value_or(last_)), CollectivePart::wait);
    call();
  }
  std::unique_ptr<Communicator> observe(std::unique_ptr<Communicator> group) override {
    return std::make_unique<TracedCommunicator>(std::move(group));
  }

 private:
  /// What is not known began before the trace.
  Collective kind_of(Ticket ticket) const {
    const auto found = metrics::tracing::on ? begun_.find(ticket) : begun_.end();
    return found == begun_.end() ? Collective::all_reduce : found->second;
  }

  std::unordered_map<Ticket, Collective> begun_;
  Ticket last_ = 0;
};

}  // namespace

std::unique_ptr<Communicator> make_traced_communicator(Communicator& inner) {
  return std::make_unique<TracedCommunicator>(inner);
}

}  // namespace assay::impl
