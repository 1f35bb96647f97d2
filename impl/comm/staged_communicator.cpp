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

  Ticket begin_all_reduce_sum(const at::Tensor& tensor) override {
    const at::Tensor staged = on_host(tensor);
    return begun(host_->begin_all_reduce_sum(staged), {{tensor, staged}});
  }
  Ticket begin_all_reduce_max(const at::Tensor& tensor) override {
    const at::Tensor staged = on_host(tensor);
    return begun(host_->begin_all_reduce_max(staged), {{tensor, staged}});
  }
  Ticket begin_reduce_scatter_sum(const at::Tensor& whole, const at::Tensor& shard) override {
    check_parts(whole, shard, rank(), size());
    const at::Tensor staged = room_for(shard);
    return begun(host_->begin_reduce_scatter_sum(on_host(whole), staged), {{shard, staged}});
  }
  Ticket begin_all_gather(const at::Tensor& shard, const at::Tensor& whole) override {
    check_parts(whole, shard, rank(), size());
    const at::Tensor staged = room_for(whole);
    return begun(host_->begin_all_gather(on_host(shard), staged), {{whole, staged}});
  }
  Ticket begin_exchange(const std::vector<Message>& messages) override {
    std::vector<Message> staged;
    std::vector<Copy> received;
    for (const auto& [way, tensor, peer] : check_messages(messages, size())) {
      const bool comes = way == Message::Way::receive;
      staged.push_back({way, comes ? room_for(tensor) : on_host(tensor), peer});
      if (comes) received.push_back({tensor, staged.back().tensor});
    }
    return begun(host_->begin_exchange(staged), std::move(received));
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

  std::vector<std::string> all_gather(const std::string& text) override { return host_->all_gather(text); }
  void barrier() override { host_->barrier(); }
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

  Ticket begun(Ticket ticket, std::vector<Copy> copies) {
    pending_.push_back({ticket, std::move(copies)});
    return ticket;
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
