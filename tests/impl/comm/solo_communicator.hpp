#pragma once
// One rank of a group whose other ranks are not there, for what can be measured on one: memory and time of
// its own work. What the others would give is what this rank gives.
#include <ATen/ATen.h>

#include <algorithm>
#include <cstdlib>
#include <stdexcept>

#include "impl/comm/communicator.hpp"

namespace assay::tests {

class SoloCommunicator : public impl::Communicator {
 public:
  SoloCommunicator(int size, int rank) : size_(size), rank_(rank) {}

  std::string engine() const override { return "solo"; }
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  Ticket begin_all_reduce_sum(const at::Tensor&) override { return ++last_; }
  Ticket begin_all_reduce_max(const at::Tensor&) override { return ++last_; }
  Ticket begin_exchange(const std::vector<impl::Message>&) override {
    throw std::logic_error("a rank alone has nobody to send to");
  }
  /// As many rows for each rank as from it.
  Ticket begin_all_to_all(const at::Tensor& send, const std::vector<std::int64_t>&, const at::Tensor& receive,
                          const std::vector<std::int64_t>&) override {
    receive.copy_(send);
    return ++last_;
  }
  Ticket begin_reduce_scatter_sum(const at::Tensor& whole, const at::Tensor& shard) override {
    if (!impl::check_parts(whole, shard, rank_, size_))
      shard.copy_(whole.narrow(0, rank_ * shard.numel(), shard.numel()));
    return ++last_;
  }
  Ticket begin_all_gather(const at::Tensor& shard, const at::Tensor& whole) override {
    const bool within = impl::check_parts(whole, shard, rank_, size_);
    for (int rank = 0; rank < size_; ++rank)
      if (!within || rank != rank_) whole.narrow(0, rank * shard.numel(), shard.numel()).copy_(shard);
    return ++last_;
  }
  void wait(Ticket) override {}
  void wait_all() override {}
  std::vector<std::string> all_gather(const std::string& text) override {
    return std::vector<std::string>(static_cast<std::size_t>(size_), text);
  }
  void barrier() override {}
  std::unique_ptr<impl::Communicator> group(const std::vector<std::int64_t>& ranks) override {
    const auto mine = std::find(ranks.begin(), ranks.end(), rank_);
    return std::make_unique<SoloCommunicator>(static_cast<int>(ranks.size()),
                                              static_cast<int>(mine - ranks.begin()));
  }
  [[noreturn]] void abort(int code) override { std::_Exit(code); }

 private:
  int size_, rank_;
  Ticket last_ = 0;
};

}  // namespace assay::tests
