#include "impl/comm/store_communicator.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <thread>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "impl/comm/store_rounds.hpp"
#include "spec/error.hpp"

namespace assay::impl {

namespace {
/// The longest time whose milliseconds the store can count in an int.
constexpr std::chrono::hours for_ever{24 * 24};
constexpr std::int64_t most_numbers = 4096;

class StoreCommunicator final : public Communicator {
 public:
  /// Keys of this group begin with `name`. `whole_job`: no group of another.
  StoreCommunicator(c10::intrusive_ptr<c10d::Store> store, std::string name, int rank, int size,
                    bool whole_job)
      : store_(std::move(store)),
        name_(std::move(name)),
        rounds_(store_, name_, rank, size),
        rank_(rank),
        size_(size),
        whole_job_(whole_job) {}

  /// Rank 0 serves the store: it goes last.
  ~StoreCommunicator() override {
    if (!whole_job_) return;
    try {
      const std::string gone = name_ + "gone";
      const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
      store_->add(gone, 1);
      while (rank_ == 0 && store_->add(gone, 0) < size_ && std::chrono::steady_clock::now() < until)
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    } catch (const std::exception&) {
      // The store is gone: so is whoever could wait.
    }
  }

  std::string engine() const override { return "store"; }
  int rank() const override { return rank_; }
  int size() const override { return size_; }

  Ticket begin_all_reduce_sum(const at::Tensor& tensor) override {
    at::Tensor(tensor).copy_(summed(tensor));
    return 0;
  }
  Ticket begin_all_reduce_max(const at::Tensor& tensor) override {
    at::Tensor(tensor).copy_(
        reduced(tensor, [](const at::Tensor& a, const at::Tensor& b) { return at::maximum(a, b); }));
    return 0;
  }
  Ticket begin_exchange(const std::vector<Message>&) override {
    throw std::invalid_argument(
        "ranks that meet in a store send no messages between two of them: give GPU tensors, which go by "
        "NCCL, "
        "or start the ranks with mpirun");
  }
  Ticket begin_reduce_scatter_sum(const at::Tensor& whole, const at::Tensor& shard) override {
    check_parts(whole, shard, rank_, size_);
    at::Tensor(shard).copy_(summed(whole).narrow(0, rank_ * shard.numel(), shard.numel()));
    return 0;
  }
  Ticket begin_all_gather(const at::Tensor& shard, const at::Tensor& whole) override {
    check_parts(whole, shard, rank_, size_);
    require_small(shard, whole);
    const std::vector<std::string> parts = rounds_.all(bytes_of(shard));
    for (std::size_t r = 0; r < parts.size(); ++r) {
      if (parts[r].size() != shard.nbytes())
        out_of_step(shard, "rank " + std::to_string(r) + " gives " + std::to_string(parts[r].size()));
      whole.narrow(0, static_cast<std::int64_t>(r) * shard.numel(), shard.numel())
          .copy_(tensor_of(parts[r], shard));
    }
    return 0;
  }
  void wait(Ticket) override {}
  void wait_all() override {}

  std::vector<std::string> all_gather(const std::string& text) override { return rounds_.all(text); }

  void barrier() override { all_gather(""); }

  std::unique_ptr<Communicator> group(const std::vector<std::int64_t>& ranks) override {
    const auto mine = std::find(ranks.begin(), ranks.end(), rank_);
    if (mine == ranks.end()) throw std::invalid_argument("a rank asks for a group without itself");
    const std::string name =
        name_ + "group" + std::to_string(groups_++) + "." + std::to_string(ranks.front()) + "/";
    return std::make_unique<StoreCommunicator>(store_, name, static_cast<int>(mine - ranks.begin()),
                                               static_cast<int>(ranks.size()), /*whole_job=*/false);
  }

  std::pair<std::string, std::uint16_t> store() const override {
    const auto& tcp = dynamic_cast<const c10d::TCPStore&>(*store_);
    return {tcp.getHost(), tcp.getPort()};
  }
  void rely_on_watch() override { store_->setTimeout(for_ever); }

  /// The launcher ends the others once it sees the exit code.
  [[noreturn]] void abort(int exit_code) override { std::_Exit(exit_code); }

 private:
  void require_small(const at::Tensor& mine, const at::Tensor& largest) const {
    if (!mine.device().is_cpu() || !mine.is_contiguous() || largest.numel() > most_numbers)
      throw std::invalid_argument("ranks that meet in a store exchange CPU tensors of at most " +
                                  std::to_string(most_numbers) + " elements, not " +
                                  std::to_string(largest.numel()));
  }
  [[noreturn]] void out_of_step(const at::Tensor& mine, const std::string& other) const {
    throw std::runtime_error("ranks are out of step: rank " + std::to_string(rank_) + " exchanges " +
                             std::to_string(mine.nbytes()) + " bytes, " + other +
                             "; a bug of this program, report it with the run's run.jsonl");
  }
  static std::string bytes_of(const at::Tensor& tensor) {
    return {static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes()};
  }
  /// As many bytes as `like` has.
  static at::Tensor tensor_of(const std::string& bytes, const at::Tensor& like) {
    at::Tensor tensor = at::empty_like(like);
    std::memcpy(tensor.data_ptr(), bytes.data(), bytes.size());
    return tensor;
  }

  at::Tensor summed(const at::Tensor& mine) {
    return reduced(mine, [](const at::Tensor& a, const at::Tensor& b) { return a + b; });
  }
  /// Of all ranks' tensors, by `join` of two: on one rank, or on each in the same order, so that the bits are
  /// the same everywhere.
  template <class Join>
  at::Tensor reduced(const at::Tensor& mine, const Join& join) {
    require_small(mine, mine);
    const auto all = [&](const std::vector<std::string>& parts) {
      at::Tensor joined;
      for (std::size_t i = 0; i < parts.size(); ++i) {
        if (parts[i].size() != mine.nbytes())
          out_of_step(mine, "rank " + std::to_string(i) + " gives " + std::to_string(parts[i].size()));
        const at::Tensor part = tensor_of(parts[i], mine);
        joined = joined.defined() ? join(joined, part) : part;
      }
      return bytes_of(joined);
    };
    const std::string result = rounds_.joined(bytes_of(mine), all);
    if (result.size() != mine.nbytes()) out_of_step(mine, "all give " + std::to_string(result.size()));
    return tensor_of(result, mine);
  }

  c10::intrusive_ptr<c10d::Store> store_;
  std::string name_;
  StoreRounds rounds_;
  int rank_, size_;
  bool whole_job_;
  std::int64_t groups_ = 0;
};

/// Ranks before they are a group: each says that it is here, rank 0 checks whether all are, and answers.
class Meeting {
 public:
  Meeting(c10d::Store& store, const Launch& launch, std::chrono::seconds patience)
      : store_(store), launch_(launch), patience_(patience) {}

  void meet() {
    if (store_.add(key("claim", launch_.rank), 1) > 1) {
      const std::string twice = "rank " + std::to_string(launch_.rank) +
                                " has come twice: two launchers use the same MASTER_ADDR and MASTER_PORT, or "
                                "start the same rank; give each job a port of its own";
      say("fault", twice);
      throw UserError(ExitCode::usage, twice);
    }
    say(key("here", launch_.rank), std::to_string(launch_.size));
    if (launch_.rank == 0) say("verdict", look_for_all());
    const std::string verdict = heard("verdict", patience_ + std::chrono::seconds(30));
    if (verdict == "complete") return;
    stay_until_read();
    const bool missing = verdict.starts_with("rank 0 waited");
    throw UserError(missing ? ExitCode::peer_lost : ExitCode::usage, verdict);
  }

 private:
  static std::string key(const std::string& what, int rank) { return what + std::to_string(rank); }
  void say(const std::string& key, const std::string& text) {
    store_.set("assay/start/" + key, std::vector<std::uint8_t>(text.begin(), text.end()));
  }
  bool is_said(const std::string& key) { return store_.check({"assay/start/" + key}); }
  std::string heard(const std::string& key, std::chrono::seconds within) {
    store_.wait({"assay/start/" + key}, within);
    const auto bytes = store_.get("assay/start/" + key);
    return {bytes.begin(), bytes.end()};
  }

  /// The store ends with rank 0, and the others have to read why.
  void stay_until_read() {
    store_.add("assay/start/read", 1);
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(1);
    while (launch_.rank == 0 && std::chrono::steady_clock::now() < until &&
           store_.add("assay/start/read", 0) < launch_.size)
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }

  /// "complete", or what is wrong.
  std::string look_for_all() {
    std::vector<int> missing(static_cast<std::size_t>(launch_.size));
    for (int r = 0; r < launch_.size; ++r) missing[static_cast<std::size_t>(r)] = r;
    const auto until = std::chrono::steady_clock::now() + patience_;
    for (;;) {
      if (is_said("fault")) return heard("fault", patience_);
      std::string other;
      std::erase_if(missing, [&](int rank) {
        if (!is_said(key("here", rank))) return false;
        const std::string size = heard(key("here", rank), patience_);
        if (other.empty() && size != std::to_string(launch_.size))
          other = "rank " + std::to_string(rank) + " was started as one of " + size +
                  " ranks, rank 0 as one of " + std::to_string(launch_.size) +
                  "; start all of them with the same number (WORLD_SIZE)";
        return true;
      });
      if (!other.empty()) return other;
      if (missing.empty()) return "complete";
      if (std::chrono::steady_clock::now() >= until) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    std::string names;
    for (std::size_t i = 0; i < missing.size() && i < 16; ++i)
      names += (i ? ", " : "") + std::to_string(missing[i]);
    if (missing.size() > 16) names += ", ...";
    return "rank 0 waited " + std::to_string(patience_.count()) + " s for " + std::to_string(launch_.size) +
           " ranks, and " + std::to_string(missing.size()) + " have not come: " + names +
           "; were they started, and do they reach " + launch_.host + ":" + std::to_string(launch_.port) +
           "?";
  }

  c10d::Store& store_;
  const Launch& launch_;
  const std::chrono::seconds patience_;
};
}  // namespace

std::unique_ptr<Communicator> make_store_communicator(const Launch& launch, std::chrono::seconds patience,
                                                      std::chrono::seconds in_run) {
  c10d::TCPStoreOptions options;
  options.port = static_cast<std::uint16_t>(launch.port);
  // torchrun's agent may serve the store on this port itself.
  const char* agent = std::getenv("TORCHELASTIC_USE_AGENT_STORE");
  options.isServer = launch.rank == 0 && !(agent && std::string(agent) == "True");
  options.numWorkers = static_cast<std::size_t>(launch.size);
  options.waitWorkers = false;
  options.timeout = patience;  // to find rank 0's store
  try {
    auto store = c10::make_intrusive<c10d::TCPStore>(launch.host, options);
    Meeting(*store, launch, patience).meet();
    store->setTimeout(in_run);
    return std::make_unique<StoreCommunicator>(std::move(store), "assay/", launch.rank, launch.size,
                                               /*whole_job=*/true);
  } catch (const UserError&) {
    throw;
  } catch (const std::exception& error) {
    throw UserError(ExitCode::peer_lost, "rank " + std::to_string(launch.rank) +
                                             " cannot reach rank 0's store at " + launch.host + ":" +
                                             std::to_string(launch.port) + ": " + error.what() +
                                             "; look at MASTER_ADDR, MASTER_PORT and rank 0");
  }
}

}  // namespace assay::impl
