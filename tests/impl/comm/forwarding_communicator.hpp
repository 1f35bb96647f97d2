#pragma once
// Communicators that look at, or spoil, what passes through them. Groups of one are of the same kind.
#include <algorithm>
#include <functional>
#include <optional>

#include "impl/comm/communicator.hpp"
#include "spec/parallel/volume.hpp"

namespace assay::tests {

class ForwardingCommunicator : public impl::Communicator {
 public:
  explicit ForwardingCommunicator(impl::Communicator& inner) : inner_(inner) {}

  std::string engine() const override { return inner_.engine(); }
  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  Ticket begin(const impl::Request& request) override { return inner_.begin(request); }
  void wait(Ticket ticket) override { inner_.wait(ticket); }
  void wait_all() override { inner_.wait_all(); }
  void settle() override { inner_.settle(); }
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

  Ticket begin(const impl::Request& request) override {
    if (spec::facts_of(request.collective).ring > 0) volume_[request.collective] += impl::bytes_of(request);
    return ForwardingCommunicator::begin(request);
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
struct Spoiling {
  std::optional<spec::Collective> kind{};
  impl::Reduction reduction = impl::Reduction::sum;
  int number = 0;          ///< of the collectives of that kind, the one that is dropped; the first is 0
  std::int64_t least = 3;  ///< of tensors with fewer elements none is counted (losses and norms)
  int seen = 0;
};

class SpoilingCommunicator : public ForwardingCommunicator {
 public:
  SpoilingCommunicator(impl::Communicator& inner, Spoiling& spoiling)
      : ForwardingCommunicator(inner), spoiling_(spoiling) {}

  Ticket begin(const impl::Request& request) override {
    if (request.collective != spoiling_.kind || request.reduction != spoiling_.reduction ||
        std::max(request.input.numel(), request.output.numel()) < spoiling_.least ||
        spoiling_.seen++ != spoiling_.number)
      return ForwardingCommunicator::begin(request);
    impl::Request apart = request;
    apart.output = request.output.clone();
    apart.input = request.input.is_same(request.output) ? apart.output : request.input.clone();
    return ForwardingCommunicator::begin(apart);
  }
  std::unique_ptr<impl::Communicator> group(const std::vector<std::int64_t>& ranks) override {
    return std::make_unique<Owning<SpoilingCommunicator, Spoiling>>(inner().group(ranks), spoiling_);
  }

 private:
  Spoiling& spoiling_;
};

}  // namespace assay::tests
