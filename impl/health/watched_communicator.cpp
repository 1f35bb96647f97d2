#include "impl/health/watched_communicator.hpp"

#include "impl/comm/observed_communicator.hpp"

namespace assay::impl {

namespace {
class WatchedCommunicator final : public ObservedCommunicator {
 public:
  WatchedCommunicator(std::unique_ptr<Communicator> inner, Row& row, std::shared_ptr<StreamWord> gpu)
      : ObservedCommunicator(std::move(inner)), row_(row), gpu_(std::move(gpu)) {}

  Ticket begin(const Request& request) override {
    const auto tensors = tensors_of(request);
    if (gpu_ && !tensors.empty() && tensors.front().is_cuda()) gpu_->write(row_.give());
    row_.begin(request.collective, bytes_of(request));
    const WaitingRow waiting(row_);  // an engine may wait for the others as soon as a collective begins
    return ObservedCommunicator::begin(request);
  }

 protected:
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
