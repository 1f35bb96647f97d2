#include "impl/comm/observed_communicator.hpp"

#include <ATen/ATen.h>

#include <array>
#include <cstdlib>

namespace assay::impl {

std::string to_string(Collective collective) {
  static constexpr std::array names = {"none",       "all-reduce",      "reduce-scatter",
                                       "all-gather", "gather of words", "barrier",
                                       "exchange",   "all-to-all"};
  return names.at(static_cast<std::size_t>(collective));
}

Communicator::Ticket ObservedCommunicator::begin_all_reduce_sum(const at::Tensor& tensor) {
  return around_begin({Collective::all_reduce, tensor.nbytes(), &tensor},
                      [&] { return inner_.begin_all_reduce_sum(tensor); });
}

Communicator::Ticket ObservedCommunicator::begin_reduce_scatter_sum(const at::Tensor& whole,
                                                                    const at::Tensor& shard) {
  return around_begin({Collective::reduce_scatter, whole.nbytes(), &whole},
                      [&] { return inner_.begin_reduce_scatter_sum(whole, shard); });
}

Communicator::Ticket ObservedCommunicator::begin_all_gather(const at::Tensor& shard,
                                                            const at::Tensor& whole) {
  return around_begin({Collective::all_gather, whole.nbytes(), &whole},
                      [&] { return inner_.begin_all_gather(shard, whole); });
}

Communicator::Ticket ObservedCommunicator::begin_all_reduce_max(const at::Tensor& tensor) {
  return around_begin({Collective::all_reduce, tensor.nbytes(), &tensor},
                      [&] { return inner_.begin_all_reduce_max(tensor); });
}

Communicator::Ticket ObservedCommunicator::begin_exchange(const std::vector<Message>& messages) {
  if (messages.empty()) return inner_.begin_exchange(messages);
  std::size_t bytes = 0;
  for (const Message& message : messages) bytes += message.tensor.nbytes();
  return around_begin({Collective::exchange, bytes, &messages.front().tensor},
                      [&] { return inner_.begin_exchange(messages); });
}

Communicator::Ticket ObservedCommunicator::begin_all_to_all(const at::Tensor& send,
                                                            const std::vector<std::int64_t>& send_counts,
                                                            const at::Tensor& receive,
                                                            const std::vector<std::int64_t>& receive_counts) {
  return around_begin({Collective::all_to_all, send.nbytes() + receive.nbytes(), &send},
                      [&] { return inner_.begin_all_to_all(send, send_counts, receive, receive_counts); });
}

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

std::vector<std::string> ObservedCommunicator::all_gather(const std::string& text) {
  std::vector<std::string> texts;
  around_begin({Collective::words, text.size(), nullptr}, [&]() -> Ticket {
    texts = inner_.all_gather(text);
    return 0;
  });
  return texts;
}

void ObservedCommunicator::barrier() {
  around_begin({Collective::barrier, 0, nullptr}, [&]() -> Ticket {
    inner_.barrier();
    return 0;
  });
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
