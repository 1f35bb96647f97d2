#include "impl/health/rank_watch.hpp"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <utility>

#include "impl/machine/disk_call.hpp"

namespace assay::impl {

namespace {
using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds beat{100};

/// The row of this process, for the exit handler: a process that exits in the middle of a run would wait for
/// the others in its exit handlers, MPI's among them.
std::atomic<Row*> row_of_process = nullptr;

void quit() {
  Row* const row = row_of_process;
  if (row && row->view().standing == Standing::running) row->stand(Standing::quit);
}

double seconds_since(Clock::time_point then) {
  return std::chrono::duration<double>(Clock::now() - then).count();
}

/// Whether `holds` does within that time.
template <class Holds>
bool within(double seconds, Holds&& holds) {
  for (const auto begin = Clock::now(); !holds(); std::this_thread::sleep_for(std::chrono::milliseconds(5)))
    if (seconds_since(begin) > seconds) return false;
  return true;
}
}  // namespace

RankWatch::RankWatch(Communicator& communicator, const WatchLimits& limits, const std::string& host,
                     WatchCalls calls, const std::string& memory)
    : board_(communicator, memory),
      hosts_(communicator.all_gather(host)),
      rank_(communicator.rank()),
      limits_(limits),
      rules_(limits, communicator.size(), communicator.rank()),
      calls_(std::move(calls)) {
  far_ = board_.ranks().front() != 0;
  if (static_cast<int>(board_.ranks().size()) < communicator.size() || far_)
    link_ = std::make_unique<PeerLink>(communicator, !far_);
  static const bool registered = std::atexit(quit) == 0;
  if (registered) row_of_process = &row();
  thread_ = std::thread([this] { work(); });
}

RankWatch::~RankWatch() {
  {
    const std::scoped_lock lock(mutex_);
    over_ = true;
    changed_.notify_all();
  }
  thread_.join();
  Row* mine = &row();
  row_of_process.compare_exchange_strong(mine, nullptr);
}

void RankWatch::work() {
  sigset_t all;  // signals are for the trainer's thread
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
  auto last = Clock::now();
  for (;;) {
    row().set_outside(outside_under_way(), outside_ended());
    look_at_gpu();
    row().beat();
    if (link_) link_->turn(row().view(), static_cast<int>(beat.count()));
    {
      std::unique_lock lock(mutex_);
      ++turns_;
      changed_.notify_all();
      if (!link_ && !over_) changed_.wait_for(lock, beat);
      if (over_) return;
    }
    Verdict verdict;
    const double passed = seconds_since(last);
    last = Clock::now();
    if (find(passed, verdict)) {
      conclude(verdict);
      return;
    }
  }
}

void RankWatch::follow(std::function<std::int64_t()> reached) {
  const std::scoped_lock lock(mutex_);
  reached_ = std::move(reached);
}

void RankWatch::look_at_gpu() {
  const std::scoped_lock lock(mutex_);
  if (reached_) row().set_reached(reached_());
}

bool RankWatch::find(double seconds, Verdict& verdict) {
  if (board_.posted(verdict)) return true;
  if (link_)
    if (const auto heard = link_->received()) {
      board_.post(*heard);
      verdict = *heard;
      // Rank 0's host reports it.
      if (far_ && board_.take_reporting()) board_.set_reported();
      return true;
    }
  if (row().view().standing == Standing::left) return false;
  const std::vector<SeenRank> all = look_around();
  const auto finding = rules_.look(seconds, all);
  warn_of_slow(all);
  if (!finding) return false;
  if (finding->rank == no_rank) {
    verdict = {no_rank, describe_standstill(*finding, all)};
  } else {
    const auto lost = static_cast<std::size_t>(finding->rank);
    verdict = {finding->rank, describe(*finding, all[lost].row, hosts_[lost])};
  }
  // A rank that dies while it writes its verdict leaves none: this one's is as good.
  if (!board_.post(verdict)) within(1, [&] { return board_.posted(verdict); });
  return true;
}

/// Rank 0 prints the warning. Where rank 0 is itself slow, rank 1 does: rank 0 may wait for its terminal.
/// This thread, whose beat the others count, must not wait for a terminal or a disk.
void RankWatch::warn_of_slow(const std::vector<SeenRank>& all) {
  for (const Slow& slow : rules_.slow(all)) {
    const bool aloud = rank_ == (slow.rank == 0 ? 1 : 0);
    const auto r = static_cast<std::size_t>(slow.rank);
    if (rank_ == 0 || aloud)
      warnings_.emplace_back(describe_slow(slow, all[r].row, hosts_[r], limits_), aloud);
  }
  const bool busy =
      warning_.valid() && warning_.wait_for(std::chrono::seconds(0)) != std::future_status::ready;
  if (warnings_.empty() || busy) return;
  warning_ = std::async(std::launch::async, [this, now = std::exchange(warnings_, {})] {
    for (const auto& [text, aloud] : now) calls_.warn(text, aloud);
  });
}

std::vector<SeenRank> RankWatch::look_around() {
  std::vector<SeenRank> all(hosts_.size());
  if (link_)
    for (const auto& [rank, seen] : link_->seen()) all[static_cast<std::size_t>(rank)] = seen;
  for (std::size_t slot = 0; slot < board_.ranks().size(); ++slot) {
    SeenRank& seen = all[static_cast<std::size_t>(board_.ranks()[slot])];
    // In this order: a process that was there when its row was read has written what it had to.
    seen.gone = board_.gone(slot);
    seen.row = board_.row(slot).view();
    seen.visible = true;
  }
  return all;
}

void RankWatch::conclude(const Verdict& verdict) {
  if (link_) link_->send(verdict);
  if (verdict.rank != rank_) {
    have_it_reported(verdict);
    end_lost_process(verdict);
  }
  if (link_) link_->flush(1000);
  // A rank that has failed ends with the code of its reason, by itself.
  if (row().view().standing != Standing::failed) calls_.end();
  const std::scoped_lock lock(mutex_);
  concluded_ = true;
  changed_.notify_all();
}

/// A rank that is stopped, or does not go on: nothing else would end it. Where nobody is named all end by
/// themselves. Launchers end the others as soon as
/// they see one end, so this comes last, but for rank 0: it holds the record that is to be written.
void RankWatch::end_lost_process(const Verdict& verdict) {
  for (std::size_t slot = 0; slot < board_.ranks().size(); ++slot)
    if (board_.ranks()[slot] == verdict.rank && board_.row(slot).view().standing == Standing::running) {
      board_.end_process(slot);
      within(2, [&] { return board_.gone(slot); });
    }
}

void RankWatch::have_it_reported(const Verdict& verdict) {
  const auto taken = [&] {
    // Where rank 0 is on another host and lives, it echoes the verdict.
    if (far_ && link_ && !board_.being_reported()) {
      link_->turn(row().view(), 20);
      if (link_->received() && board_.take_reporting()) board_.set_reported();
    }
    return board_.being_reported();
  };
  const bool nobody_goes_first = reports_first(verdict) && (!far_ || verdict.rank == 0);
  if (!within(nobody_goes_first ? 0 : 1, taken) && board_.take_reporting()) {
    calls_.report(verdict.text);
    if (verdict.rank == 0) end_lost_process(verdict);
    calls_.record(verdict.text);
    board_.set_reported();
  }
  within(3, [&] { return board_.is_reported(); });
}

bool RankWatch::reports_first(const Verdict& verdict) const {
  for (std::size_t slot = 0; slot < board_.ranks().size(); ++slot) {
    const int rank = board_.ranks()[slot];
    if (rank == verdict.rank || board_.gone(slot) || board_.row(slot).view().standing != Standing::running)
      continue;
    return rank == rank_;
  }
  return false;
}

void RankWatch::say(Standing standing) {
  std::unique_lock lock(mutex_);
  row().stand(standing);
  const int wanted = turns_ + 2;  // the turn that runs may have read the row before
  changed_.notify_all();
  if (link_) changed_.wait_for(lock, std::chrono::milliseconds(800), [&] { return turns_ >= wanted; });
}

void RankWatch::fail(const std::string& why) {
  row().set_reason(why);
  say(Standing::failed);
}

void RankWatch::leave() { say(Standing::left); }

void RankWatch::await_verdict(double seconds) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, std::chrono::duration<double>(seconds), [this] { return concluded_; });
}

}  // namespace assay::impl
