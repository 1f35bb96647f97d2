#include "impl/run/survivors.hpp"

#include <c10/core/InferenceMode.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

#include "impl/checkpoint/snapshot.hpp"
#include "impl/health/judge.hpp"
#include "impl/machine/host_name.hpp"
#include "spec/error.hpp"

namespace assay::impl::run {

namespace {

/// The copy that `rank` is among the ranks of its part that are left.
Copies copy_without(const std::vector<HeldParts>& parts, std::size_t set, int rank, int lost) {
  Copies copies{.number = 0, .count = 0};
  for (int other = 0; other < std::ssize(parts); ++other) {
    const auto i = static_cast<std::size_t>(other);
    if (other == lost || parts[i][set] != parts[static_cast<std::size_t>(rank)][set]) continue;
    if (other < rank) ++copies.number;
    ++copies.count;
  }
  return copies;
}

/// Does `work` on a thread of its own; what it returns, or nothing once that long has passed: it goes on
/// then, in a process that is about to end.
std::optional<std::string> at_most(std::chrono::seconds patience, std::function<std::string()> work) {
  struct Shared {
    std::mutex mutex;
    std::condition_variable changed;
    std::optional<std::string> result;
  };
  const auto shared = std::make_shared<Shared>();
  std::thread([shared, work = std::move(work)] {
    std::string result;
    try {
      result = work();
    } catch (const std::exception& error) {
      result = std::string("not saved: ") + error.what();
    }
    const std::scoped_lock lock(shared->mutex);
    shared->result = std::move(result);
    shared->changed.notify_all();
  }).detach();
  std::unique_lock lock(shared->mutex);
  shared->changed.wait_for(lock, patience, [&] { return shared->result.has_value(); });
  return shared->result;
}

/// The state's count, once no update is under way: one of copies waits for no other rank, and ends by itself.
std::uint32_t settled(const StateMark& mark) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  std::uint32_t count = mark.count();
  for (; !mark.at(count) && std::chrono::steady_clock::now() < until; count = mark.count())
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return count;
}
}  // namespace

std::optional<Writer> writer_without(const std::vector<HeldParts>& parts, int rank, int lost) {
  Writer writer{.sets = {}, .biases = rank == (lost == 0 ? 1 : 0)};
  for (std::size_t set = 0; set < parts.front().size(); ++set) {
    if (lost != no_rank && copy_without(parts, set, lost, lost).count == 0) return {};
    writer.sets.push_back(copy_without(parts, set, rank, lost));
  }
  return writer;
}

Survivors::Survivors(LayoutGroups& groups, const ParameterBuffers& buffers, const StateMark& mark,
                     std::function<Target(const WholeState&)> target)
    : buffers_(buffers), mark_(mark), target_(std::move(target)), rank_(groups.all().rank()) {
  Communicator& all = groups.all();
  parts_.resize(static_cast<std::size_t>(all.size()));
  for (const spec::SetRanks& set : groups.ranks().sets) {
    const auto parts = all.all_gather(std::to_string(set.replicas.first));
    for (std::size_t i = 0; i < parts.size(); ++i) parts_[i].push_back(std::stoll(parts[i]));
  }
  const auto now = std::chrono::system_clock::now().time_since_epoch().count();
  start_ = all.all_gather(std::to_string(getpid()) + "-" + std::to_string(now)).front();
}

std::string Survivors::save(int lost, bool stays, std::int64_t first_step,
                            const std::string& directory) const {
  const int without = stays ? no_rank : lost;
  const auto writer = writer_without(parts_, rank_, without);
  const std::uint32_t count = writer ? settled(mark_) : mark_.count();
  const auto whole = mark_.at(count);
  const std::string who = "rank " + std::to_string(lost);
  if (whole && whole->step <= first_step) return "";
  if (!writer) return "no other rank had what " + who + " held of weights and moments, so that they are lost";
  if (!whole)
    return "weights and moments are not saved: " + who + (stays ? " failed" : " was lost") +
           " in the middle of their update";
  std::int64_t bytes = 0;
  for (const auto part : {&ParameterBuffers::master, &ParameterBuffers::moment1, &ParameterBuffers::moment2})
    bytes += static_cast<std::int64_t>((buffers_.*part).nbytes());
  // What the slowest disk takes that anyone trains on [B/s].
  constexpr std::int64_t slowest = 50 << 20;
  const std::chrono::seconds patience(20 + bytes * std::ssize(parts_) / slowest);
  // A save that waits in vain for a rank's part ends by itself, and takes its folder with it.
  constexpr std::chrono::seconds its_end(10);
  const auto result = at_most(patience + its_end,
                              [this, writer = *writer, without, whole = *whole, count, patience, directory] {
                                return written(writer, without, whole, count, patience, directory);
                              });
  return result.value_or("weights and moments are not saved: that took longer than " +
                         std::to_string((patience + its_end).count()) + " s");
}

std::string Survivors::written(const Writer& writer, int without, const WholeState& whole,
                               std::uint32_t count, std::chrono::seconds patience,
                               const std::string& directory) const {
  const c10::InferenceMode no_autograd;
  const at::Device device = buffers_.master.device();
  // The trainer's stream may hang behind a kernel that waits for the lost rank.
  std::optional<c10::cuda::CUDAStreamGuard> beside;
  if (device.is_cuda())
    beside.emplace(c10::cuda::getStreamFromPool(/*isHighPriority=*/false, device.index()));
  const Target target = target_(whole);
  std::vector<int> left;
  for (int rank = 0; rank < std::ssize(parts_); ++rank)
    if (rank != without) left.push_back(rank);
  checkpoint::Save save(directory, buffers_, target.state, target.keep,
                        {.rank = rank_,
                         .ranks = static_cast<int>(parts_.size()),
                         .left = left,
                         .writer = writer,
                         .start = start_,
                         .patience = patience});
  const std::string step = "step " + std::to_string(whole.step);
  if (!save.there())
    save.write(
        save.snapshot(buffers_), [] {},
        [&] {
          if (mark_.count() != count)
            throw UserError(ExitCode::io, "weights were updated while they were saved");
        });
  if (rank_ != left.front()) return "";
  const checkpoint::Saved saved = save.commit();
  return step + (without == no_rank ? " is saved, in " : " is saved by the ranks that are left, in ") +
         saved.path + " on host " + host_name();
}

}  // namespace assay::impl::run
