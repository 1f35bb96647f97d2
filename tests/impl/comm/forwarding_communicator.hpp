#pragma once
// Communicators that look at, or spoil, what passes through them. Groups of one are of the same kind.
#include <functional>

#include "impl/comm/communicator.hpp"
#include "spec/parallel/volume.hpp"

namespace assay::tests {

class ForwardingCommunicator : public impl::Communicator {
 public:
  explicit ForwardingCommunicator(impl::Communicator& inner) : inner_(inner) {}

  std::string engine() const override { return inner_.engine(); }
  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  Ticket begin_all_reduce_sum(const at::Tensor& tensor) override {
    return inner_.begin_all_reduce_sum(tensor);
  }
  Ticket begin_reduce_scatter_sum(const at::Tensor& whole, const at::Tensor& shard) override {
    return inner_.begin_reduce_scatter_sum(whole, shard);
  }
  Ticket begin_all_gather(const at::Tensor& shard, const at::Tensor& whole) override {
    return inner_.begin_all_gather(shard, whole);
  }
  Ticket begin_all_reduce_max(const at::Tensor& tensor) override {
    return inner_.begin_all_reduce_max(tensor);
  }
  Ticket begin_exchange(const std::vector<impl::Message>& messages) override {
    return inner_.begin_exchange(messages);
  }
  Ticket begin_all_to_all(const at::Tensor& send, const std::vector<std::int64_t>& send_counts,
                          const at::Tensor& receive,
                          const std::vector<std::int64_t>& receive_counts) override {
    return inner_.begin_all_to_all(send, send_counts, receive, receive_counts);
  }
  void wait(Ticket ticket) override { inner_.wait(ticket); }
  void wait_all() override { inner_.wait_all(); }
  void settle() override { inner_.settle(); }
  std::vector<std::string> all_gather(const std::string& text) override { return inner_.all_gather(text); }
  void barrier() override { inner_.barrier(); }
  [[noreturn]] void abort(int code) override {
    inner_.abort(code);
    std::abort();
  }

 protected:
  impl::Communicator& inner() { return inner_; }

 private:
  impl::Communicator& inner_;
};

/// A forwarding communicator of kind T, made by T(inner, context), with what it forwards to.
template <class T, class Context>
class Owning final : public T {
 public:
  Owning(std::unique_ptr<impl::Communicator> inner, Context& context)
      : T(*inner, context), owned_(std::move(inner)) {}

 private:
  std::unique_ptr<impl::Communicator> owned_;
};

/// Adds up the bytes of whole tensors by collective, those of its groups included. CPU or GPU alike.
class CountingCommunicator : public ForwardingCommunicator {
 public:
  CountingCommunicator(impl::Communicator& inner, spec::Volume& volume)
      : ForwardingCommunicator(inner), volume_(volume) {}

  Ticket begin_all_reduce_sum(const at::Tensor& tensor) override {
    volume_.all_reduce += static_cast<std::int64_t>(tensor.nbytes());
    return ForwardingCommunicator::begin_all_reduce_sum(tensor);
  }
  Ticket begin_all_reduce_max(const at::Tensor& tensor) override {
    volume_.all_reduce += static_cast<std::int64_t>(tensor.nbytes());
    return ForwardingCommunicator::begin_all_reduce_max(tensor);
  }
  Ticket begin_reduce_scatter_sum(const at::Tensor& whole, const at::Tensor& shard) override {
    volume_.reduce_scatter += static_cast<std::int64_t>(whole.nbytes());
    return ForwardingCommunicator::begin_reduce_scatter_sum(whole, shard);
  }
  Ticket begin_all_gather(const at::Tensor& shard, const at::Tensor& whole) override {
    volume_.all_gather += static_cast<std::int64_t>(whole.nbytes());
    return ForwardingCommunicator::begin_all_gather(shard, whole);
  }
  Ticket begin_all_to_all(const at::Tensor& send, const std::vector<std::int64_t>& send_counts,
                          const at::Tensor& receive,
                          const std::vector<std::int64_t>& receive_counts) override {
    volume_.all_to_all += static_cast<std::int64_t>(send.nbytes());
    return ForwardingCommunicator::begin_all_to_all(send, send_counts, receive, receive_counts);
  }
  std::unique_ptr<impl::Communicator> group(const std::vector<std::int64_t>& ranks) override {
    return std::make_unique<Owning<CountingCommunicator, spec::Volume>>(inner().group(ranks), volume_);
  }

 private:
  spec::Volume& volume_;
};

/// Of all groups together.
inline spec::Volume total(const spec::StepVolume& step) {
  return step.shard + step.replica + step.world + step.tensor + step.experts + step.expert_group;
}

/// A collective that this rank fakes: the others are answered, but the result is thrown away.
enum class Dropped { nothing, all_reduce, all_reduce_max, reduce_scatter, all_gather };

struct Spoiling {
  Dropped kind = Dropped::nothing;
  int number = 0;          ///< of the collectives of that kind, the one that is dropped; the first is 0
  std::int64_t least = 3;  ///< of tensors with fewer elements none is counted (losses and norms)
  int seen = 0;
};

class SpoilingCommunicator : public ForwardingCommunicator {
 public:
  SpoilingCommunicator(impl::Communicator& inner, Spoiling& spoiling)
      : ForwardingCommunicator(inner), spoiling_(spoiling) {}

  Ticket begin_all_reduce_sum(const at::Tensor& tensor) override {
    return ForwardingCommunicator::begin_all_reduce_sum(drop(Dropped::all_reduce, tensor) ? tensor.clone()
                                                                                          : tensor);
  }
  Ticket begin_all_reduce_max(const at::Tensor& tensor) override {
    return ForwardingCommunicator::begin_all_reduce_max(drop(Dropped::all_reduce_max, tensor) ? tensor.clone()
                                                                                              : tensor);
  }
  Ticket begin_reduce_scatter_sum(const at::Tensor& whole, const at::Tensor& shard) override {
    if (!drop(Dropped::reduce_scatter, whole))
      return ForwardingCommunicator::begin_reduce_scatter_sum(whole, shard);
    return ForwardingCommunicator::begin_reduce_scatter_sum(whole.clone(), shard.clone());
  }
  Ticket begin_all_gather(const at::Tensor& shard, const at::Tensor& whole) override {
    return ForwardingCommunicator::begin_all_gather(shard.clone(),
                                                    drop(Dropped::all_gather, whole) ? whole.clone() : whole);
  }
  std::unique_ptr<impl::Communicator> group(const std::vector<std::int64_t>& ranks) override {
    return std::make_unique<Owning<SpoilingCommunicator, Spoiling>>(inner().group(ranks), spoiling_);
  }

 private:
  bool drop(Dropped kind, const at::Tensor& tensor) {
    return kind == spoiling_.kind && tensor.numel() >= spoiling_.least &&
           spoiling_.seen++ == spoiling_.number;
  }

  Spoiling& spoiling_;
};

}  // namespace assay::tests
