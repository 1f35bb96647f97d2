#pragma once
// A communicator that does what another one does, while somebody observes its calls.
#include <functional>
#include <memory>
#include <optional>

#include "impl/comm/communicator.hpp"

namespace assay::impl {

/// Every call goes to `inner`. Whoever observes overrides `begin`, and writes the two hooks.
class ObservedCommunicator : public Communicator {
 public:
  explicit ObservedCommunicator(Communicator& inner) : inner_(inner) {}  ///< `inner` lives longer
  explicit ObservedCommunicator(std::unique_ptr<Communicator> inner)
      : owned_(std::move(inner)), inner_(*owned_) {}

  std::string engine() const final { return inner_.engine(); }
  int rank() const final { return inner_.rank(); }
  int size() const final { return inner_.size(); }
  Ticket begin(const Request& request) override { return inner_.begin(request); }
  void wait(Ticket ticket) final;
  void wait_all() final;
  void settle() final;
  at::Tensor received(Ticket ticket, const at::Tensor& tensor) final;
  std::unique_ptr<Communicator> group(const std::vector<std::int64_t>& ranks) final;
  std::pair<std::string, std::uint16_t> store() const final { return inner_.store(); }
  void rely_on_watch() final { inner_.rely_on_watch(); }
  [[noreturn]] void abort(int exit_code) final;

 protected:
  /// Makes `call`, which waits for this collective, or for several.
  virtual void around_wait(std::optional<Ticket> ticket, const std::function<void()>& call) = 0;
  /// A group of `inner`, observed in the same way.
  virtual std::unique_ptr<Communicator> observe(std::unique_ptr<Communicator> group) = 0;

 private:
  const std::unique_ptr<Communicator> owned_;
  Communicator& inner_;
};

}  // namespace assay::impl
