#include "impl/comm/communicator.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <numeric>
#include <stdexcept>

namespace assay::impl {

using spec::Collective;

namespace {
/// A message for every rank, of its rows of `tensor`.
std::vector<Message> rows_of_ranks(const at::Tensor& tensor, const std::vector<std::int64_t>& rows) {
  std::vector<Message> messages;
  std::int64_t first = 0;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    messages.push_back({tensor.narrow(0, first, rows[r]), static_cast<int>(r)});
    first += rows[r];
  }
  return messages;
}

void check_rows(const at::Tensor& tensor, const std::vector<std::int64_t>& rows, int size) {
  const auto sum = std::accumulate(rows.begin(), rows.end(), std::int64_t{0});
  const bool negative = std::any_of(rows.begin(), rows.end(), [](std::int64_t n) { return n < 0; });
  if (tensor.dim() < 1 || rows.size() != static_cast<std::size_t>(size) || negative || sum != tensor.size(0))
    throw std::invalid_argument("an all-to-all takes a number of rows for each of " + std::to_string(size) +
                                " ranks, not " + std::to_string(rows.size()) + " numbers that add up to " +
                                std::to_string(sum));
}

void check_peers(const std::vector<Message>& messages, int size) {
  for (const Message& message : messages)
    if (message.peer < 0 || message.peer >= size)
      throw std::invalid_argument("a message names rank " + std::to_string(message.peer) + " of " +
                                  std::to_string(size));
}

void check_parts(const at::Tensor& whole, const at::Tensor& shard, int rank, int size) {
  if (whole.scalar_type() != shard.scalar_type() || whole.numel() != shard.numel() * size)
    throw std::invalid_argument("a collective of equal parts takes tensors of one dtype, " +
                                std::to_string(size) + " parts of " + std::to_string(shard.numel()) +
                                " elements, not " + std::to_string(whole.numel()));
  const auto* begin = static_cast<const char*>(whole.const_data_ptr());
  const auto* part = static_cast<const char*>(shard.const_data_ptr());
  const auto bytes = static_cast<std::ptrdiff_t>(shard.nbytes());
  if (part != begin + rank * bytes && part + bytes > begin && part < begin + size * bytes)
    throw std::invalid_argument("a shard overlaps with the whole, but is not this rank's part of it");
}
}  // namespace

std::vector<at::Tensor> tensors_of(const Request& request) {
  std::vector<at::Tensor> tensors;
  for (const at::Tensor& each : {request.input, request.output})
    if (each.defined()) tensors.push_back(each);
  for (const auto* messages : {&request.messages.sends, &request.messages.receives})
    for (const Message& each : *messages) tensors.push_back(each.tensor);
  return tensors;
}

Messages messages_of(const Request& request) {
  Messages messages = request.messages;
  if (request.collective == Collective::all_to_all)
    messages = {rows_of_ranks(request.input, request.sent), rows_of_ranks(request.output, request.received)};
  for (auto* each : {&messages.sends, &messages.receives})
    std::erase_if(*each, [](const Message& message) { return message.tensor.numel() == 0; });
  return messages;
}

void deliver_own(Messages& messages, int rank) {
  const auto own = [&](std::vector<Message>& all) {
    const auto first = std::stable_partition(all.begin(), all.end(),
                                             [&](const Message& message) { return message.peer != rank; });
    std::vector<Message> taken(first, all.end());
    all.erase(first, all.end());
    return taken;
  };
  const std::vector<Message> sends = own(messages.sends), receives = own(messages.receives);
  if (sends.size() != receives.size())
    throw std::invalid_argument("a rank that sends to itself receives as many messages in the same call");
  for (std::size_t i = 0; i < sends.size(); ++i) receives[i].tensor.view(-1).copy_(sends[i].tensor.view(-1));
}

std::int64_t bytes_of(const Request& request) {
  const spec::Counted counted = spec::facts_of(request.collective).counted;
  std::size_t bytes = 0;
  if (counted == spec::Counted::input) bytes = request.input.nbytes();
  if (counted == spec::Counted::output) bytes = request.output.nbytes();
  if (counted == spec::Counted::text) bytes = request.text.size();
  if (counted == spec::Counted::messages)
    for (const at::Tensor& each : tensors_of(request)) bytes += each.nbytes();
  return static_cast<std::int64_t>(bytes);
}

void check(const Request& request, int rank, int size) {
  const std::vector<at::Tensor> tensors = tensors_of(request);
  for (const at::Tensor& each : tensors)
    if (!each.is_contiguous() || each.device() != tensors.front().device())
      throw std::invalid_argument("ranks move contiguous tensors of one device");
  if (request.collective == Collective::all_reduce && !request.output.is_same(request.input))
    throw std::invalid_argument("an all-reduce is in place");
  if (request.collective == Collective::reduce_scatter)
    check_parts(request.input, request.output, rank, size);
  if (request.collective == Collective::all_gather) check_parts(request.output, request.input, rank, size);
  if (request.collective == Collective::all_to_all) {
    check_rows(request.input, request.sent, size);
    check_rows(request.output, request.received, size);
  }
  check_peers(request.messages.sends, size);
  check_peers(request.messages.receives, size);
}

}  // namespace assay::impl
