#include "impl/health/watched_communicator.hpp"

#include <ATen/ATen.h>

#include <cstdlib>

namespace assay::impl {

namespace {
class WatchedCommunicator final : public Communicator {
 public:
  WatchedCommunicator(std::unique_ptr<Communicator> inner, Row& row, std::shared_ptr<GpuProgress> gpu)
      : inner_(std::move(inner)), row_(row), gpu_(std::move(gpu)) {}

  std::string engine() const override { return inner_->engine(); }
  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }

  // An engine may wait for the others as soon as a collective begins.
  Ticket begin_all_reduce_sum(const at::Tensor& tensor) override {
    const auto waiting = enter(Collective::all_reduce, tensor);
    return inner_->begin_all_reduce_sum(tensor);
  }
  Ticket begin_reduce_scatter_sum(const at::Tensor& whole, const at::Tensor& shard) override {
    const auto waiting = enter(Collective::reduce_scatter, whole);
    return inner_->begin_reduce_scatter_sum(whole, shard);
  }
  Ticket begin_all_gather(const at::Tensor& shard, const at::Tensor& whole) override {
    const auto waiting = enter(Collective::all_gather, whole);
    return inner_->begin_all_gather(shard, whole);
  }
  Ticket begin_all_reduce_max(const at::Tensor& tensor) override {
    const auto waiting = enter(Collective::all_reduce, tensor);
    return inner_->begin_all_reduce_max(tensor);
  }
  Ticket begin_exchange(const std::vector<Message>& messages) override {
    if (messages.empty()) return inner_->begin_exchange(messages);
    std::size_t bytes = 0;
    for (const Message& message : messages) bytes += message.tensor.nbytes();
    const auto waiting = enter(Collective::exchange, messages.front().tensor, bytes);
    return inner_->begin_exchange(messages);
  }
  Ticket begin_all_to_all(const at::Tensor& send, const std::vector<std::int64_t>& send_counts,
                          const at::Tensor& receive,
                          const std::vector<std::int64_t>& receive_counts) override {
    const auto waiting = enter(Collective::all_to_all, send, send.nbytes() + receive.nbytes());
    return inner_->begin_all_to_all(send, send_counts, receive, receive_counts);
  }
  void wait(Ticket ticket) override {
    const WaitingRow waiting(row_);
    inner_->wait(ticket);
  }
  void wait_all() override {
    const WaitingRow waiting(row_);
    inner_->wait_all();
  }
  void settle() override {
    const WaitingRow waiting(row_);
    inner_->settle();
  }
  std::vector<std::string> all_gather(const std::string& text) override {
    const auto waiting = enter(Collective::words, text.size());
    return inner_->all_gather(text);
  }
  void barrier() override {
    const auto waiting = enter(Collective::barrier, 0);
    inner_->barrier();
  }
  std::unique_ptr<Communicator> group(const std::vector<std::int64_t>& ranks) override {
    const WaitingRow waiting(row_);
    return make_watched_communicator(inner_->group(ranks), row_, gpu_);
  }
  [[noreturn]] void abort(int exit_code) override {
    inner_->abort(exit_code);
    std::_Exit(exit_code);
  }

 private:
  WaitingRow enter(Collective collective, const at::Tensor& tensor) {
    return enter(collective, tensor, tensor.nbytes());
  }
  /// `tensor`: one of those that move, on their device.
  WaitingRow enter(Collective collective, const at::Tensor& tensor, std::size_t bytes) {
    if (gpu_ && tensor.is_cuda()) {
      row_.give();  // first: what the GPU has come to, it was given
      gpu_->begin();
    }
    return enter(collective, bytes);
  }
  WaitingRow enter(Collective collective, std::size_t bytes) {
    row_.begin(collective, static_cast<std::int64_t>(bytes));
    return WaitingRow(row_);
  }

  std::unique_ptr<Communicator> inner_;
  Row& row_;
  const std::shared_ptr<GpuProgress> gpu_;
};
}  // namespace

std::unique_ptr<Communicator> make_watched_communicator(std::unique_ptr<Communicator> inner, Row& row,
                                                        std::shared_ptr<GpuProgress> gpu) {
  return std::make_unique<WatchedCommunicator>(std::move(inner), row, std::move(gpu));
}

}  // namespace assay::impl
