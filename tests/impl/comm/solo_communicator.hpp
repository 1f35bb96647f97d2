#pragma once
// One rank of a group whose other ranks are not there, for what can be measured on one: memory and time of
// its own work. What the others would give is what this rank gives.
#include <ATen/ATen.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <stdexcept>
#include <tuple>

#include "impl/comm/communicator.hpp"

namespace assay::tests {

class SoloCommunicator : public impl::Communicator {
 public:
  SoloCommunicator(int size, int rank) : size_(size), rank_(rank) {}

  std::string engine() const override { return "solo"; }
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  Ticket begin(const impl::Request& request) override {
    using spec::Collective;
    impl::check(request, rank_, size_);
    const at::Tensor &in = request.input, &out = request.output;
    switch (request.collective) {
      case Collective::all_reduce:
      case Collective::barrier:
        break;
      case Collective::reduce_scatter:
        if (const at::Tensor part = in.narrow(0, rank_ * out.numel(), out.numel());
            part.const_data_ptr() != out.const_data_ptr())
          out.copy_(part);
        break;
      case Collective::all_gather:
        for (int rank = 0; rank < size_; ++rank)
          if (const at::Tensor part = out.narrow(0, rank * in.numel(), in.numel());
              part.const_data_ptr() != in.const_data_ptr())
            part.copy_(in);
        break;
      case Collective::all_to_all:  // as many rows for each rank as from it
        out.copy_(in);
        break;
      case Collective::texts:
        request.all_texts->assign(static_cast<std::size_t>(size_), request.text);
        break;
      default:
        throw std::logic_error("a rank alone has nobody to send to");
    }
    return ++last_;
  }
  void wait(Ticket) override {}
  void wait_all() override {}
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
  Ticket begin(const impl::Request& request) override {
    if (request.collective != spec::Collective::all_to_all) return SoloCommunicator::begin(request);
    const auto& [send, receive, sent, received] =
        std::tie(request.input, request.output, request.sent, request.received);
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
    return SoloCommunicator::begin({.collective = spec::Collective::barrier});
  }
  std::unique_ptr<impl::Communicator> group(const std::vector<std::int64_t>& ranks) override {
    const auto mine = std::find(ranks.begin(), ranks.end(), rank());
    return std::make_unique<MirrorCommunicator>(static_cast<int>(ranks.size()),
                                                static_cast<int>(mine - ranks.begin()));
  }
};

}  // namespace assay::tests
