#include "impl/comm/gloo_communicator.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <functional>
#include <stdexcept>
#include <thread>

#define USE_C10D_GLOO
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include "impl/comm/max_keys.hpp"
#include "impl/comm/meeting.hpp"
#include "spec/error.hpp"

namespace assay::impl {

namespace {
/// The longest time whose milliseconds Gloo and the store can count in an int.
constexpr std::chrono::hours for_ever{24 * 24};

/// Of more ranks, rank 0 adds up a few numbers, which a ring would take two trips a rank for, and two ranks
/// connect when they first speak: most pairs never do.
constexpr int few = 16;
constexpr std::size_t numbers = 4096;  ///< [B]

using Work = c10::intrusive_ptr<c10d::Work>;

using Device = std::shared_ptr<gloo::transport::Device>;

/// What the groups of a job share.
struct Job {
  Met met;
  Device device;  ///< this process's listener and its thread, of all groups of few ranks
  std::chrono::milliseconds patience;
};

Device transport_at(const std::string& address, bool lazily) {
  const char* interface = std::getenv("GLOO_SOCKET_IFNAME");
  return interface && *interface ? c10d::ProcessGroupGloo::createDeviceForInterface(interface, lazily)
                                 : c10d::ProcessGroupGloo::createDeviceForHostname(address, lazily);
}

void require_summable(const at::Tensor& tensor) {
  const at::ScalarType type = tensor.scalar_type();
  if (type != at::kDouble && type != at::kFloat && type != at::kBFloat16 && type != at::kLong)
    throw std::invalid_argument(std::string("ranks reduce fp64, fp32, bf16 and int64, not ") +
                                at::toString(type));
}

/// bf16 is added up in fp32 and rounded once.
at::ScalarType type_of_sum(at::ScalarType type) { return type == at::kBFloat16 ? at::kFloat : type; }

class GlooCommunicator final : public Communicator {
  /// What Gloo or the store throws is a rank that is gone.
  template <class Call>
  auto guarded(const char* what, Call&& call) const {
    try {
      return call();
    } catch (const UserError&) {
      throw;
    } catch (const std::exception& error) {
      lost_ = true;
      const std::string text = error.what();
      throw UserError(ExitCode::peer_lost, "rank " + std::to_string(rank_) + ": " + what + " of " +
                                               std::to_string(size_) +
                                               " ranks failed: " + text.substr(0, text.find('\n')) +
                                               "; a rank has probably died, look at the first message of the "
                                               "others");
    }
  }

 public:
  /// Keys of this group begin with `name`, which is no other's. `whole_job`: no group of another.
  GlooCommunicator(std::shared_ptr<Job> job, std::string name, int rank, int size, bool whole_job)
      : job_(std::move(job)), name_(std::move(name)), rank_(rank), size_(size), whole_job_(whole_job) {
    guarded("meet", [&] {
      auto options = c10d::ProcessGroupGloo::Options::create(job_->patience);
      // Connections that are made later are identified by the rank alone: no group shares them.
      options->devices = {size_ > few ? transport_at(job_->met.address, /*lazily=*/true) : job_->device};
      options->threads = 1;  // sums of a group run one behind another
      group_ = c10::make_intrusive<c10d::ProcessGroupGloo>(
          c10::make_intrusive<c10d::PrefixStore>(name_, job_->met.store), rank_, size_, options);
    });
  }

  /// The store ends with rank 0 in most jobs: it goes last.
  ~GlooCommunicator() override {
    if (!whole_job_ || lost_) return;
    try {
      c10d::Store& store = *job_->met.store;
      const std::string gone = name_ + "gone";
      const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
      store.add(gone, 1);
      while (rank_ == 0 && store.add(gone, 0) < size_ && std::chrono::steady_clock::now() < until)
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    } catch (const std::exception&) {
      // The store is gone: so is whoever could wait.
    }
  }

  std::string engine() const override { return "gloo"; }
  int rank() const override { return rank_; }
  int size() const override { return size_; }

  Ticket begin(const Request& request) override {
    check(request, rank_, size_);
    const std::vector<at::Tensor> tensors = tensors_of(request);
    if (!tensors.empty() && !tensors.front().device().is_cpu())
      throw std::invalid_argument("Gloo moves tensors of the CPU");
    if (spec::facts_of(request.collective).reduces) require_summable(request.output);
    switch (request.collective) {
      case spec::Collective::all_reduce:
        return request.reduction == Reduction::max ? all_reduce_max(request.output)
                                                   : reduce(request.output, c10d::ReduceOp::SUM, {});
      case spec::Collective::reduce_scatter:
        return reduce_scatter(request.input, request.output);
      case spec::Collective::all_gather:
        return all_gather_parts(request.input, request.output);
      case spec::Collective::all_to_all:
      case spec::Collective::exchange:
      case spec::Collective::send:
      case spec::Collective::receive: {
        Messages messages = messages_of(request);
        deliver_own(messages, rank_);
        return begin(exchanged(messages), tensors);
      }
      case spec::Collective::texts:
        *request.all_texts = texts_of_all(request.text);
        return 0;
      case spec::Collective::barrier:
        return begin({guarded("barrier", [&] { return group_->barrier(); })}, {});
    }
    throw std::logic_error("no such collective");
  }

  void wait(Ticket ticket) override {
    while (!pending_.empty() && pending_.front().ticket <= ticket) {
      const Pending first = std::move(pending_.front());
      pending_.pop_front();
      await(first.works);
      if (first.finish) first.finish();
    }
  }
  void wait_all() override { wait(last_); }

  std::unique_ptr<Communicator> group(const std::vector<std::int64_t>& ranks) override {
    const auto mine = std::find(ranks.begin(), ranks.end(), rank_);
    if (mine == ranks.end()) throw std::invalid_argument("a rank asks for a group without itself");
    const std::string name =
        name_ + "group" + std::to_string(groups_++) + "." + std::to_string(ranks.front()) + "/";
    if (ranks.size() == 1) return make_self_communicator();
    return std::make_unique<GlooCommunicator>(job_, name, static_cast<int>(mine - ranks.begin()),
                                              static_cast<int>(ranks.size()), /*whole_job=*/false);
  }

  std::pair<std::string, std::uint16_t> store() const override {
    return {job_->met.store->getHost(), job_->met.store->getPort()};
  }
  void rely_on_watch() override {
    job_->patience = for_ever;
    group_->setTimeout(for_ever);
    job_->met.store->setTimeout(for_ever);
  }

  /// The watches of the others, or their launcher, end them.
  [[noreturn]] void abort(int exit_code) override { std::_Exit(exit_code); }

 private:
  struct Pending {
    Ticket ticket = 0;
    std::vector<Work> works{};
    std::vector<at::Tensor> alive{};
    std::function<void()> finish{};  ///< once complete
  };

  Ticket begin(std::vector<Work> works, std::vector<at::Tensor> alive, std::function<void()> finish = {}) {
    pending_.push_back({++last_, std::move(works), std::move(alive), std::move(finish)});
    return last_;
  }
  void await(const std::vector<Work>& works) const {
    guarded("a collective", [&] {
      for (const Work& work : works) work->wait();
    });
  }

  Ticket all_reduce_max(const at::Tensor& tensor) {
    const at::Tensor keys = max_keys(tensor);
    return reduce(keys, c10d::ReduceOp::MAX, [keys, tensor] { write_numbers(keys, tensor); });
  }

  /// Each rank is sent its part by every other, and adds them up in the order of the ranks.
  Ticket reduce_scatter(const at::Tensor& whole, const at::Tensor& shard) {
    const at::Tensor parts = whole.view({size_, shard.numel()}),
                     room = at::empty({size_, shard.numel()}, shard.options());
    const auto to = [&](int r) { return parts[r]; };
    return begin(with_others(to, room), {whole, room}, [parts, room, shard, mine = rank_] {
      room[mine].copy_(parts[mine]);
      at::Tensor(shard).view(-1).copy_(room.sum({0}, false, type_of_sum(room.scalar_type())));
    });
  }

  Ticket all_gather_parts(const at::Tensor& shard, const at::Tensor& whole) {
    const at::Tensor parts = whole.view({size_, shard.numel()});
    if (parts[rank_].const_data_ptr() != shard.const_data_ptr()) parts[rank_].copy_(shard.view(-1));
    return begin(with_others([&](int) { return shard; }, parts), {shard, whole});
  }

  std::vector<std::string> texts_of_all(const std::string& text) {
    const std::string all = by_rank_0(text, [](const std::vector<std::string>& each) {
      std::string joined;
      for (const std::string& one : each) joined += std::to_string(one.size()) + " ";
      joined += "\n";
      for (const std::string& one : each) joined += one;
      return joined;
    });
    std::vector<std::string> out;
    std::size_t at = all.find('\n') + 1;
    const char* next = all.c_str();
    for (int r = 0; r < size_; ++r) {
      char* end = nullptr;
      const std::size_t length = std::strtoull(next, &end, 10);
      next = end;
      out.push_back(all.substr(at, length));
      at += length;
    }
    return out;
  }

  Ticket reduce(const at::Tensor& tensor, c10d::ReduceOp::RedOpType op, std::function<void()> finish) {
    if (tensor.numel() == 0) return begin({}, {});
    if (size_ > few && tensor.nbytes() <= numbers) {
      reduce_by_rank_0(tensor, op);
      return begin({}, {}, std::move(finish));
    }
    c10d::AllreduceOptions options;
    options.reduceOp = op;
    std::vector<at::Tensor> one = {tensor};
    auto work = guarded("a sum", [&] { return group_->allreduce(one, options); });
    return begin({work}, std::move(one), std::move(finish));
  }

  void reduce_by_rank_0(const at::Tensor& tensor, c10d::ReduceOp::RedOpType op) {
    const auto of = [&](const std::string& bytes) {
      if (bytes.size() != tensor.nbytes())
        throw std::runtime_error("ranks are out of step: rank 0 reduces " + std::to_string(tensor.nbytes()) +
                                 " bytes, another rank " + std::to_string(bytes.size()) +
                                 "; a bug of this program, report it with the run's run.jsonl");
      return at::from_blob(const_cast<char*>(bytes.data()), tensor.sizes(), tensor.options());
    };
    const auto bytes_of = [](const at::Tensor& from) {
      return std::string(static_cast<const char*>(from.const_data_ptr()), from.nbytes());
    };
    const std::string all = by_rank_0(bytes_of(tensor), [&](const std::vector<std::string>& each) {
      at::Tensor result = of(each[0]).to(type_of_sum(tensor.scalar_type()), false, /*copy=*/true);
      for (std::size_t r = 1; r < each.size(); ++r)
        result = op == c10d::ReduceOp::SUM ? result + of(each[r]) : at::maximum(result, of(each[r]));
      return bytes_of(result.to(tensor.scalar_type()));
    });
    at::Tensor(tensor).copy_(of(all));
  }

  /// Begins to send each other rank its tensor, and to receive its row of `room`.
  std::vector<Work> with_others(const std::function<at::Tensor(int)>& to, const at::Tensor& room) {
    Messages messages;
    for (int r = 0; r < size_; ++r)
      if (r != rank_) messages.sends.push_back({to(r), r}), messages.receives.push_back({room[r], r});
    return exchanged(messages);
  }
  /// Begins the messages. Those between two ranks are numbered.
  std::vector<Work> exchanged(const Messages& messages) {
    return guarded("messages", [&] {
      std::vector<Work> works;
      const auto each = [&](const std::vector<Message>& tensors, std::vector<std::uint32_t>& numbers,
                            const auto& call) {
        for (const auto& [tensor, peer] : tensors) {
          if (tensor.numel() == 0) continue;
          std::vector<at::Tensor> one = {tensor};
          const std::uint32_t number = numbers[static_cast<std::size_t>(peer)]++;
          works.push_back(call(one, peer, static_cast<int>(number & 0x7fffffff)));
        }
      };
      each(messages.sends, sent_, [&](auto& one, int peer, int tag) { return group_->send(one, peer, tag); });
      each(messages.receives, received_,
           [&](auto& one, int peer, int tag) { return group_->recv(one, peer, tag); });
      return works;
    });
  }

  /// What `join` makes, on rank 0, of the texts of all ranks, on every rank. Does not wait for what was
  /// begun.
  std::string by_rank_0(const std::string& mine,
                        const std::function<std::string(const std::vector<std::string>&)>& join) {
    const auto bytes = [](std::string& text) {
      return at::from_blob(text.data(), {static_cast<std::int64_t>(text.size())}, at::kByte);
    };
    std::string text = mine;
    at::Tensor length = at::full({1}, static_cast<std::int64_t>(text.size()), at::kLong);
    if (rank_ == 0) {
      std::vector<std::string> texts(static_cast<std::size_t>(size_));
      const at::Tensor lengths = at::zeros({size_}, at::kLong);
      Messages heads, bodies;
      for (int r = 1; r < size_; ++r) heads.receives.push_back({lengths.narrow(0, r, 1), r});
      await(exchanged(heads));
      texts[0] = text;
      for (int r = 1; r < size_; ++r) {
        std::string& one = texts[static_cast<std::size_t>(r)];
        one.resize(static_cast<std::size_t>(lengths[r].item<std::int64_t>()));
        bodies.receives.push_back({bytes(one), r});
      }
      await(exchanged(bodies));
      text = join(texts);
      length.fill_(static_cast<std::int64_t>(text.size()));
    } else {
      await(exchanged({.sends = {{length, 0}, {bytes(text), 0}}}));
    }
    broadcast(length);
    text.resize(static_cast<std::size_t>(length.item<std::int64_t>()));
    if (!text.empty()) broadcast(bytes(text));
    return text;
  }

  void broadcast(const at::Tensor& tensor) {
    std::vector<at::Tensor> one = {tensor};
    guarded("broadcast", [&] { group_->broadcast(one)->wait(); });
  }

  const std::shared_ptr<Job> job_;
  const std::string name_;
  const int rank_, size_;
  const bool whole_job_;
  c10::intrusive_ptr<c10d::ProcessGroupGloo> group_;
  std::vector<std::uint32_t> sent_ = std::vector<std::uint32_t>(static_cast<std::size_t>(size_)),
                             received_ = sent_;  ///< messages to and from each rank
  mutable bool lost_ = false;                    ///< a rank is gone: nobody waits for anybody
  std::int64_t groups_ = 0;
  Ticket last_ = 0;
  std::deque<Pending> pending_;
};
}  // namespace

std::unique_ptr<Communicator> make_gloo_communicator(const Launch& launch, std::chrono::seconds patience,
                                                     std::chrono::seconds in_run,
                                                     const std::function<bool()>& stopped) {
  auto job = std::make_shared<Job>();
  job->met = meet(launch, patience, stopped);
  // Its ranks meet over TCP as well.
  if (job->met.address == loopback) setenv("NCCL_SOCKET_IFNAME", "lo", 0);
  job->patience = in_run;
  job->met.store->setTimeout(in_run);
  job->device = transport_at(job->met.address, /*lazily=*/false);
  const int rank = job->met.rank;
  return std::make_unique<GlooCommunicator>(std::move(job), launch.keys, rank, launch.size,
                                            /*whole_job=*/true);
}

}  // namespace assay::impl
