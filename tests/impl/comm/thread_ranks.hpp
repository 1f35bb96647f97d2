#pragma once
// Ranks as threads of one process, so that a property can draw their number. Collectives take their input
// when they begin and give their result when they are waited for; in between, what will be overwritten holds
// NaN: whoever does not wait computes with it.
#include <ATen/ATen.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "impl/comm/communicator.hpp"
#include "impl/comm/meeting.hpp"
#include "tests/impl/comm/free_port.hpp"

namespace assay::tests {

/// What the threads of one group share.
class Meeting {
 public:
  explicit Meeting(int size) : size_(size) {}
  int size() const { return size_; }

  /// Gives `mine` to round `round`; does not wait.
  void give(std::int64_t round, int rank, at::Tensor tensor, std::string text) {
    const std::scoped_lock lock(mutex_);
    Round& r = rounds_[round];
    r.tensors.resize(static_cast<std::size_t>(size_)), r.texts.resize(static_cast<std::size_t>(size_));
    r.tensors[static_cast<std::size_t>(rank)] = std::move(tensor);
    r.texts[static_cast<std::size_t>(rank)] = std::move(text);
    ++r.given;
    all_given_.notify_all();
  }
  /// What all gave to the round. Errors: std::runtime_error when a rank failed, or stays away for a minute.
  std::pair<std::vector<at::Tensor>, std::vector<std::string>> take(std::int64_t round) {
    std::unique_lock lock(mutex_);
    const auto ready = [&] { return failed_ || rounds_[round].given == size_; };
    if (!all_given_.wait_for(lock, std::chrono::minutes(1), ready))
      throw std::runtime_error("a rank stays away from a collective");
    if (failed_) throw std::runtime_error("another rank failed");
    Round& r = rounds_[round];
    auto all = std::make_pair(r.tensors, r.texts);
    if (++r.taken == size_) rounds_.erase(round);
    return all;
  }
  /// A message from one rank to another; does not wait.
  void send(int from, int to, at::Tensor tensor) {
    const std::scoped_lock lock(mutex_);
    messages_[{from, to}].push_back(std::move(tensor));
    all_given_.notify_all();
  }
  /// The oldest of them. Errors: as take.
  at::Tensor receive(int from, int to) {
    std::unique_lock lock(mutex_);
    auto& queue = messages_[{from, to}];
    if (!all_given_.wait_for(lock, std::chrono::minutes(1), [&] { return failed_ || !queue.empty(); }))
      throw std::runtime_error("a message stays away");
    if (failed_) throw std::runtime_error("another rank failed");
    at::Tensor tensor = std::move(queue.front());
    queue.pop_front();
    return tensor;
  }
  void fail() {
    const std::scoped_lock lock(mutex_);
    failed_ = true;
    all_given_.notify_all();
    for (auto& [key, group] : groups_) group->fail();
  }
  /// Port of a store that this group serves on the loopback interface, from the first call on.
  std::uint16_t store() {
    const std::scoped_lock lock(mutex_);
    if (!store_) {
      c10d::TCPStoreOptions options;
      options.port = static_cast<std::uint16_t>(free_port());
      options.isServer = true, options.waitWorkers = false;
      store_ = c10::make_intrusive<c10d::TCPStore>("127.0.0.1", options);
    }
    return store_->getPort();
  }
  void end_store() {
    const std::scoped_lock lock(mutex_);
    store_.reset();
  }
  std::shared_ptr<Meeting> group(std::int64_t number, const std::vector<std::int64_t>& ranks) {
    const std::scoped_lock lock(mutex_);
    auto& found = groups_[{number, ranks}];
    if (!found) found = std::make_shared<Meeting>(static_cast<int>(ranks.size()));
    return found;
  }

 private:
  struct Round {
    std::vector<at::Tensor> tensors;
    std::vector<std::string> texts;
    int given = 0, taken = 0;
  };
  const int size_;
  std::mutex mutex_;
  std::condition_variable all_given_;
  std::map<std::int64_t, Round> rounds_;
  std::map<std::pair<int, int>, std::deque<at::Tensor>> messages_;  ///< by sender and receiver
  std::map<std::pair<std::int64_t, std::vector<std::int64_t>>, std::shared_ptr<Meeting>> groups_;
  c10::intrusive_ptr<c10d::TCPStore> store_;
  bool failed_ = false;
};

class ThreadCommunicator final : public impl::Communicator {
 public:
  ThreadCommunicator(std::shared_ptr<Meeting> meeting, int rank)
      : meeting_(std::move(meeting)), rank_(rank) {}

  std::string engine() const override { return "threads"; }
  int rank() const override { return rank_; }
  int size() const override { return meeting_->size(); }

  Ticket begin(const impl::Request& request) override {
    using spec::Collective;
    impl::check(request, rank_, size());
    const at::Tensor &in = request.input, &out = request.output;
    switch (request.collective) {
      case Collective::all_reduce:
        return give(in, in, [out, largest = request.reduction == impl::Reduction::max](const Tensors& all) {
          at::Tensor result = all[0].clone();
          for (std::size_t r = 1; r < all.size(); ++r)
            result = largest ? at::maximum(result, all[r]) : result.add_(all[r]);
          out.copy_(result);
        });
      case Collective::reduce_scatter:
        return give(in, in, [out, rank = rank_](const Tensors& all) {
          const auto part = [&](const at::Tensor& each) {
            return each.narrow(0, rank * out.numel(), out.numel());
          };
          at::Tensor sum = part(all[0]).clone();
          for (std::size_t r = 1; r < all.size(); ++r) sum.add_(part(all[r]));
          out.copy_(sum);
        });
      case Collective::all_gather:
        return give(in, out, [out](const Tensors& all) { out.copy_(at::cat(all)); });
      case Collective::all_to_all:
      case Collective::exchange:
      case Collective::send:
      case Collective::receive:
        return exchange(impl::messages_of(request));
      case Collective::texts:
        *request.all_texts = texts_of_all(request.text);
        return last_;
      case Collective::barrier:
        texts_of_all("");
        return last_;
    }
    throw std::logic_error("no such collective");
  }
  void wait(Ticket ticket) override {
    while (!pending_.empty() && pending_.front().ticket <= ticket) {
      const Pending first = std::move(pending_.front());
      pending_.pop_front();
      first.finish();
    }
  }
  void wait_all() override { wait(last_); }

  std::unique_ptr<Communicator> group(const std::vector<std::int64_t>& ranks) override {
    const auto mine = std::find(ranks.begin(), ranks.end(), rank_);
    return std::make_unique<ThreadCommunicator>(meeting_->group(groups_++, ranks),
                                                static_cast<int>(mine - ranks.begin()));
  }
  std::pair<std::string, std::uint16_t> store() const override { return {"127.0.0.1", meeting_->store()}; }
  /// As the end of the process that serves it would.
  void end_store() { meeting_->end_store(); }
  [[noreturn]] void abort(int) override { throw std::runtime_error("aborted"); }

 private:
  struct Pending {
    Ticket ticket;
    std::function<void()> finish;
  };
  static void spoil(const at::Tensor& in_flight) {
    if (at::isFloatingType(in_flight.scalar_type()))
      at::Tensor(in_flight).fill_(std::numeric_limits<double>::quiet_NaN());
  }
  using Tensors = std::vector<at::Tensor>;
  Ticket give(const at::Tensor& given, const at::Tensor& in_flight,
              std::function<void(const Tensors&)> finish) {
    const at::Tensor copy = given.clone();
    spoil(in_flight);
    meeting_->give(++round_, rank_, copy, {});
    pending_.push_back({++last_, [this, round = round_, finish = std::move(finish)] {
                          finish(meeting_->take(round).first);
                        }});
    return last_;
  }
  /// Rounds are of all ranks, messages of two: their number is no round's.
  Ticket exchange(const impl::Messages& messages) {
    for (const auto& [tensor, peer] : messages.sends) meeting_->send(rank_, peer, tensor.clone());
    for (const auto& [tensor, peer] : messages.receives) spoil(tensor);
    pending_.push_back({++last_, [this, receives = messages.receives] {
                          for (const auto& [tensor, peer] : receives)
                            tensor.view(-1).copy_(meeting_->receive(peer, rank_).view(-1));
                        }});
    return last_;
  }
  std::vector<std::string> texts_of_all(const std::string& text) {
    meeting_->give(++round_, rank_, {}, text);
    return meeting_->take(round_).second;
  }

  std::shared_ptr<Meeting> meeting_;
  int rank_;
  std::int64_t round_ = 0, groups_ = 0;
  Ticket last_ = 0;
  std::deque<Pending> pending_;
};

/// Runs `rank` on `size` threads, each with its communicator; throws what the first that failed threw.
inline void on_thread_ranks(int size, const std::function<void(impl::Communicator&)>& rank) {
  const auto meeting = std::make_shared<Meeting>(size);
  std::mutex mutex;
  std::exception_ptr first;
  std::vector<std::thread> threads;
  for (int r = 0; r < size; ++r)
    threads.emplace_back([&, r] {
      try {
        ThreadCommunicator communicator(meeting, r);
        rank(communicator);
      } catch (...) {
        {
          const std::scoped_lock lock(mutex);
          if (!first) first = std::current_exception();
        }
        meeting->fail();
      }
    });
  for (std::thread& thread : threads) thread.join();
  if (first) std::rethrow_exception(first);
}

}  // namespace assay::tests
