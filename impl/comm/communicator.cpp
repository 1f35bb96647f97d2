#include "impl/comm/communicator.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <numeric>
#include <stdexcept>

namespace assay::impl {

namespace {
/// Adds a message for every rank, of its rows of `tensor`.
void add_messages(std::vector<Message>& messages, Message::Way way, const at::Tensor& tensor,
                  const std::vector<std::int64_t>& counts, int size) {
  const auto sum = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
  const bool negative = std::any_of(counts.begin(), counts.end(), [](std::int64_t n) { return n < 0; });
  if (!tensor.is_contiguous() || tensor.dim() < 1 || counts.size() != static_cast<std::size_t>(size) ||
      negative || sum != tensor.size(0))
    throw std::invalid_argument("an all-to-all takes contiguous tensors and a number of rows for each of " +
                                std::to_string(size) + " ranks, not " + std::to_string(counts.size()) +
                                " numbers that add up to " + std::to_string(sum));
  std::int64_t first = 0;
  for (int r = 0; r < size; ++r) {
    const std::int64_t rows = counts[static_cast<std::size_t>(r)];
    messages.push_back({way, tensor.narrow(0, first, rows), r});
    first += rows;
  }
}
}  // namespace

Communicator::Ticket Communicator::begin_all_to_all(const at::Tensor& send,
                                                    const std::vector<std::int64_t>& send_counts,
                                                    const at::Tensor& receive,
                                                    const std::vector<std::int64_t>& receive_counts) {
  std::vector<Message> messages;
  add_messages(messages, Message::Way::send, send, send_counts, size());
  add_messages(messages, Message::Way::receive, receive, receive_counts, size());
  return begin_exchange(messages);
}

std::vector<Message> check_messages(const std::vector<Message>& messages, int size) {
  std::vector<Message> filled;
  for (const Message& message : messages) {
    if (message.peer < 0 || message.peer >= size)
      throw std::invalid_argument("a message names rank " + std::to_string(message.peer) + " of " +
                                  std::to_string(size));
    if (!message.tensor.is_contiguous() || message.tensor.device() != messages.front().tensor.device())
      throw std::invalid_argument("messages are contiguous tensors of one device");
    if (message.tensor.numel() > 0) filled.push_back(message);
  }
  return filled;
}

bool check_parts(const at::Tensor& whole, const at::Tensor& shard, int rank, int size) {
  if (!whole.is_contiguous() || !shard.is_contiguous() || whole.scalar_type() != shard.scalar_type() ||
      whole.device() != shard.device() || whole.numel() != shard.numel() * size)
    throw std::invalid_argument(
        "a collective of equal parts takes contiguous tensors of one dtype and device, " +
        std::to_string(size) + " parts of " + std::to_string(shard.numel()) + " elements, not " +
        std::to_string(whole.numel()));
  const auto* begin = static_cast<const char*>(whole.const_data_ptr());
  const auto* part = static_cast<const char*>(shard.const_data_ptr());
  const auto bytes = static_cast<std::ptrdiff_t>(shard.nbytes());
  if (part == begin + rank * bytes) return true;
  if (part + bytes > begin && part < begin + size * bytes)
    throw std::invalid_argument("a shard overlaps with the whole, but is not this rank's part of it");
  return false;
}

}  // namespace assay::impl
