#pragma once
// One rank of a group whose other ranks are not there, for what can be measured on one: memory and time of
// its own work. What the others would give is what this rank gives.
#include <ATen/ATen.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>
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

/// One rank of a group whose other ranks have the same tokens and the same routing: each sends as many to
/// this rank as this rank sends itself, with the same choices. Numbers of theirs are zero.
class MirrorCommunicator : public SoloCommunicator {
 public:
  using SoloCommunicator::SoloCommunicator;
  Ticket begin_all_to_all(const at::Tensor& send, const std::vector<std::int64_t>& sent,
                          const at::Tensor& receive, const std::vector<std::int64_t>& received) override {
    const auto here = static_cast<std::size_t>(rank());
    const at::Tensor own =
        send.narrow(0, std::accumulate(sent.begin(), sent.begin() + rank(), std::int64_t{0}), sent[here]);
    std::int64_t at = 0;
    for (std::size_t r = 0; r < received.size(); at += received[r++]) {
      at::Tensor from = receive.narrow(0, at, received[r]);
      if (r == here || !send.is_floating_point())
        from.copy_(own);
      else
        from.zero_();
    }
    return SoloCommunicator::begin_all_reduce_sum({});
  }
  std::unique_ptr<impl::Communicator> group(const std::vector<std::int64_t>& ranks) override {
    const auto mine = std::find(ranks.begin(), ranks.end(), rank());
    return std::make_unique<MirrorCommunicator>(static_cast<int>(ranks.size()),
                                                static_cast<int>(mine - ranks.begin()));
  }
};

}  // namespace assay::tests
