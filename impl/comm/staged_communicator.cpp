#include "impl/comm/staged_communicator.hpp"

#include <ATen/ATen.h>
#include <c10/cuda/CUDAGraphsC10Utils.h>
#include <c10/cuda/CUDAStream.h>

#include <cstdlib>
#include <deque>
#include <utility>

namespace assay::impl {

namespace {
class StagedCommunicator final : public Communicator {
 public:
  StagedCommunicator(std::unique_ptr<Communicator> host, at::Device device)
      : host_(std::move(host)), device_(device) {}

  std::string engine() const override { return "staged (through the host, for tests)"; }
  int rank() const override { return host_->rank(); }
  int size() const override { return host_->size(); }

  Ticket begin(const Request& request) override {
    check(request, rank(), size());
    Request staged = request;
    std::vector<Copy> copies;
    const auto comes = [&](at::Tensor& tensor, const at::Tensor& room) {
      copies.push_back({std::exchange(tensor, room), room});
    };
    if (staged.input.defined()) staged.input = on_host(staged.input);
    if (staged.output.defined())
      comes(staged.output, request.output.is_same(request.input) ? staged.input : room_for(staged.output));
    for (Message& each : staged.messages.sends) each.tensor = on_host(each.tensor);
    for (Message& each : staged.messages.receives) comes(each.tensor, room_for(each.tensor));
    const Ticket ticket = host_->begin(staged);
    if (!copies.empty()) pending_.push_back({ticket, std::move(copies)});
    return ticket;
  }

  void wait(Ticket ticket) override {
    host_->wait(ticket);
    while (!pending_.empty() && pending_.front().ticket <= ticket) {
      for (const auto& [to, from] : pending_.front().copies)
        if (!to.is_same(from)) at::Tensor(to).copy_(from, /*non_blocking=*/true);
      pending_.pop_front();
    }
  }
  void wait_all() override {
    host_->wait_all();
    if (!pending_.empty()) wait(pending_.back().ticket);
  }
  void settle() override {
    if (device_.is_cuda()) c10::cuda::getCurrentCUDAStream(device_.index()).synchronize();
  }

  std::unique_ptr<Communicator> group(const std::vector<std::int64_t>& ranks) override {
    return make_staged_communicator(host_->group(ranks), device_);
  }
  void rely_on_watch() override { host_->rely_on_watch(); }
  [[noreturn]] void abort(int exit_code) override {
    host_->abort(exit_code);
    std::_Exit(exit_code);
  }

 private:
  struct Copy {
    at::Tensor to, from;
  };
  struct Pending {
    Ticket ticket;
    std::vector<Copy> copies;
  };

  bool is_staged(const at::Tensor& tensor) const { return tensor.device().type() == device_.type(); }

  /// Memory of the host for what comes; a tensor that is not staged is its own.
  at::Tensor room_for(const at::Tensor& tensor) const {
    if (!is_staged(tensor)) return tensor;
    return at::empty(tensor.sizes(), tensor.options().device(at::kCPU).pinned_memory(device_.is_cuda()));
  }
  /// What the tensor holds after the work that the current stream was given so far.
  at::Tensor on_host(const at::Tensor& tensor) const {
    const at::Tensor room = room_for(tensor);
    if (room.is_same(tensor)) return tensor;
    require_no_capture();
    room.copy_(tensor, /*non_blocking=*/true);
    if (device_.is_cuda()) c10::cuda::getCurrentCUDAStream(device_.index()).synchronize();
    return room;
  }
  void require_no_capture() const {
    if (!device_.is_cuda() ||
        c10::cuda::currentStreamCaptureStatusMayInitCtx() == c10::cuda::CaptureStatus::None)
      return;
    throw UserError(
        ExitCode::usage,
        "ASSAY_COMMUNICATOR=staged sends tensors through the host, which a CUDA graph cannot hold; "
        "set compute.cuda_graph=off");
  }

  std::unique_ptr<Communicator> host_;
  at::Device device_;
  std::deque<Pending> pending_;
};
}  // namespace

std::unique_ptr<Communicator> make_staged_communicator(std::unique_ptr<Communicator> host,
                                                       at::Device device) {
  return std::make_unique<StagedCommunicator>(std::move(host), device);
}

bool staged_is_wanted() {
  const char* set = std::getenv("ASSAY_COMMUNICATOR");
  const std::string engine = set ? set : "";
  if (engine.empty() || engine == "nccl") return false;
  if (engine == "staged") return true;
  throw AgreedError(ExitCode::usage,
                    "ASSAY_COMMUNICATOR=" + engine +
                        " is no engine between GPUs: unset it for NCCL, or set it to staged, "
                        "for tests of several ranks on one GPU");
}

}  // namespace assay::impl
