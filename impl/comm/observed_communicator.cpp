#include "impl/comm/observed_communicator.hpp"

#include <ATen/ATen.h>

#include <cstdlib>

namespace assay::impl {

void ObservedCommunicator::wait(Ticket ticket) {
  around_wait(ticket, [&] { inner_.wait(ticket); });
}

void ObservedCommunicator::wait_all() {
  around_wait({}, [&] { inner_.wait_all(); });
}

void ObservedCommunicator::settle() {
  around_wait({}, [&] { inner_.settle(); });
}

at::Tensor ObservedCommunicator::received(Ticket ticket, const at::Tensor& tensor) {
  at::Tensor host;
  around_wait(ticket, [&] { host = inner_.received(ticket, tensor); });
  return host;
}

std::unique_ptr<Communicator> ObservedCommunicator::group(const std::vector<std::int64_t>& ranks) {
  std::unique_ptr<Communicator> group;
  around_wait({}, [&] { group = inner_.group(ranks); });
  return observe(std::move(group));
}

void ObservedCommunicator::abort(int exit_code) {
  inner_.abort(exit_code);
  std::_Exit(exit_code);
}

}  // namespace assay::impl
