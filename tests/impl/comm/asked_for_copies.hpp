#pragma once
// A communicator that grants copies on any device, remembers what it was asked to copy from, and lets its
// engine go on as before.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/impl/comm/forwarding_communicator.hpp"

namespace assay::tests {

struct AskedCopies {
  std::vector<at::Tensor> gathered;                          ///< memories that hold shards
  std::vector<std::pair<at::Tensor, at::Tensor>> scattered;  ///< memories of wholes, and staging
  int handles = 0;                                           ///< that live
  int reduced = 0;                                           ///< wholes, since a memory of wholes is known
  std::string faults = "";                                   ///< of those
};

class AskedForCopies : public ForwardingCommunicator {
 public:
  AskedForCopies(impl::Communicator& inner, AskedCopies& asked)
      : ForwardingCommunicator(inner), asked_(asked) {}

  std::shared_ptr<void> gather_by_copies(const at::Tensor& memory) override {
    asked_.gathered.push_back(memory);
    return handle();
  }
  std::shared_ptr<void> scatter_by_copies(const at::Tensor& memory, const at::Tensor& staging) override {
    asked_.scattered.emplace_back(memory, staging);
    scatters_ = true;
    return handle();
  }
  Ticket begin_reduce_scatter_sum(const at::Tensor& whole, const at::Tensor& shard) override {
    if (scatters_) look(whole, shard);
    return ForwardingCommunicator::begin_reduce_scatter_sum(whole, shard);
  }
  std::unique_ptr<impl::Communicator> group(const std::vector<std::int64_t>& ranks) override {
    return std::make_unique<Owning<AskedForCopies, AskedCopies>>(inner().group(ranks), asked_);
  }

 private:
  std::shared_ptr<void> handle() {
    ++asked_.handles;
    return {static_cast<void*>(&asked_), [&asked = asked_](void*) { --asked.handles; }};
  }
  void look(const at::Tensor& whole, const at::Tensor& shard) {
    const auto& [memory, staging] = asked_.scattered.back();
    const auto* at = static_cast<const char*>(whole.const_data_ptr());
    const auto* from = static_cast<const char*>(memory.const_data_ptr());
    ++asked_.reduced;
    if (at < from || at + whole.nbytes() > from + memory.nbytes()) asked_.faults += "outside of the memory; ";
    if (staging.nbytes() < shard.nbytes() * static_cast<std::size_t>(size() - 1))
      asked_.faults += "too little room for the others' parts; ";
  }

  AskedCopies& asked_;
  bool scatters_ = false;
};

}  // namespace assay::tests
