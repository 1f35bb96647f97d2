#include "impl/health/watched_communicator.hpp"

#include "impl/comm/observed_communicator.hpp"

namespace assay::impl {

namespace {
class WatchedCommunicator final : public ObservedCommunicator {
 public:
  WatchedCommunicator(std::unique_ptr<Communicator> inner, Row& row, std::shared_ptr<StreamWord> gpu)
      : ObservedCommunicator(std::move(inner)), row_(row), gpu_(std::move(gpu)) {}

 protected:
  Ticket around_begin(const Begun& begun, const std::function<Ticket()>& call) override {
    if (gpu_ && begun.moved && begun.moved->is_cuda()) gpu_->write(row_.give());
    row_.begin(begun.what, static_cast<std::int64_t>(begun.bytes));
    const WaitingRow waiting(row_);  // an engine may wait for the others as soon as a collective begins
    return call();
  }
  void around_wait(std::optional<Ticket>, const std::function<void()>& call) override {
    const WaitingRow waiting(row_);
    call();
  }
  std::unique_ptr<Communicator> observe(std::unique_ptr<Communicator> group) override {
    return make_watched_communicator(std::move(group), row_, gpu_);
  }

 private:
  Row& row_;
  const std::shared_ptr<StreamWord> gpu_;
};
}  // namespace

std::unique_ptr<Communicator> make_watched_communicator(std::unique_ptr<Communicator> inner, Row& row,
                                                        std::shared_ptr<StreamWord> gpu) {
  return std::make_unique<WatchedCommunicator>(std::move(inner), row, std::move(gpu));
}

}  // namespace assay::impl
