#include "impl/health/rank_watch.hpp"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <sstream>

#include "impl/comm/let_go.hpp"
#include "impl/machine/disk_call.hpp"
#include "spec/error.hpp"

namespace assay::impl {

namespace {
using Clock = std::chrono::steady_clock;

/// Of this process, for its exit handler.
std::atomic<RankWatch*> watch_of_process = nullptr;

double seconds_since(Clock::time_point then) {
  return std::chrono::duration<double>(Clock::now() - then).count();
}

void pause(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

std::string key_of(int rank) { return "row" + std::to_string(rank); }

std::string bytes_of(const RowView& row) { return {reinterpret_cast<const char*>(&row), sizeof row}; }

/// Waits for `work` that long at most: it goes on where it hangs, in a process that is about to end.
void at_most(double seconds, std::function<void()> work) {
  const auto done = std::make_shared<std::atomic<bool>>(false);
  std::thread([done, work = std::move(work)] {
    work();
    *done = true;
  }).detach();
  for (const auto begin = Clock::now(); !*done && seconds_since(begin) < seconds;) pause(0.01);
}
}  // namespace

WatchCalls calls_of_this_process() {
  const auto end = [] {
    // A GPU's kernels wait for the rank that is lost, and so may those who try to end them.
    at_most(3, let_go_of_all);
    std::_Exit(static_cast<int>(ExitCode::peer_lost));
  };
  return {.print = [](const std::string& text) { std::cerr << text << std::flush; }, .end = end};
}

RankWatch::RankWatch(Communicator& communicator, const WatchLimits& limits, WatchCalls calls,
                     const std::string& host, const Process& process)
    : rank_(communicator.rank()), limits_(limits), calls_(std::move(calls)) {
  std::ostringstream mine;
  mine << host << '\n' << process.space << '\n' << process.id << ' ' << process.start;
  for (const std::string& text : communicator.all_gather(mine.str())) {
    std::istringstream words(text);
    Peer& peer = peers_.emplace_back();
    std::getline(words, peer.host), std::getline(words, peer.process.space);
    words >> peer.process.id >> peer.process.start;
    table_.emplace_back().host = peer.host;
  }
  for (int r = 0; r < communicator.size(); ++r) {
    SeenRank& seen = table_[static_cast<std::size_t>(r)];
    seen.visible = rank_ == 0 || r == 0 || here(r);
    if (seen.visible) read_.push_back(r);
  }
  store_ = connect_to_job_store(communicator, process.space);
  if (rank_ == 0) store_->set("verdict", ""), store_->set("reported", "");
  store_->set(key_of(rank_), bytes_of(row_.view()));
  communicator.barrier();
  static const bool registered = std::atexit(quit) == 0;
  if (registered) watch_of_process = this;
  thread_ = std::thread([this] { work(); });
}

RankWatch::~RankWatch() { stop(); }

void RankWatch::stop() {
  RankWatch* mine = this;
  watch_of_process.compare_exchange_strong(mine, nullptr);
  {
    const std::scoped_lock lock(mutex_);
    over_ = hurry_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

void RankWatch::work() {
  sigset_t all;  // signals are for the trainer's thread
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
  const std::chrono::milliseconds beat(peers_.size() <= 128 ? 100 : 400);  // one store answers all ranks
  for (auto last = Clock::now();;) {
    const bool anew = turn(0.4);
    const double passed = seconds_since(std::exchange(last, Clock::now()));
    if (const auto verdict = find(anew, passed)) return conclude(*verdict);
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, beat, [this] { return hurry_; });
    hurry_ = false;
    if (over_) break;
  }
  if (row_.view().standing == Standing::left) go_last();
}

/// Whether an exchange has ended within that time. Begins one where none is under way.
bool RankWatch::turn(double seconds) {
  if (closed_) return false;
  if (!exchange_.valid()) {
    const std::scoped_lock lock(mutex_);
    if (reached_) row_.set_reached(reached_());
    row_.set_outside(outside_under_way(), outside_ended());
    RowView mine = row_.view();
    mine.beat = ++beat_, mine.knows = news_.verdict.has_value();
    exchange_ = std::async(std::launch::async, &RankWatch::exchange, this, mine, proposed_, has_reported_);
  }
  if (exchange_.wait_for(std::chrono::duration<double>(seconds)) != std::future_status::ready) return false;
  try {
    news_ = exchange_.get();
  } catch (const std::exception&) {
    closed_ = true;
  }
  return !closed_;
}

RankWatch::News RankWatch::exchange(const RowView& mine, const std::optional<Verdict>& proposed,
                                    bool reported) {
  store_->set(key_of(rank_), bytes_of(mine));
  if (proposed) store_->set_first("verdict", std::to_string(proposed->rank) + " " + proposed->text);
  if (reported) store_->set("reported", "yes");
  News news;
  std::vector<std::string> keys = {"verdict", "reported"};
  for (const int r : read_) {
    news.gone.push_back(gone(r));  // first: a process that was there has published what it had to
    keys.push_back(key_of(r));
  }
  const std::vector<std::string> texts = store_->get(keys);
  if (!texts[0].empty()) {
    std::istringstream words(texts[0]);
    words >> news.verdict.emplace().rank;
    std::getline(words >> std::ws, news.verdict->text, '\0');
  }
  news.reported = !texts[1].empty();
  for (std::size_t i = 2; i < texts.size(); ++i)
    std::memcpy(&news.rows.emplace_back(), texts[i].data(), std::min(texts[i].size(), sizeof(RowView)));
  return news;
}

std::optional<RankWatch::Verdict> RankWatch::find(bool anew, double seconds) {
  if (news_.verdict) return news_.verdict;
  for (std::size_t i = 0; i < news_.rows.size(); ++i) {
    SeenRank& seen = table_[static_cast<std::size_t>(read_[i])];
    // Of a store that does not answer, rank 0 alone is to blame.
    if (anew || read_[i] == 0) update(seen, news_.rows[i], seconds);
    seen.gone = news_.gone[i];
  }
  if (closed_) {
    table_[0].gone = within(1, [this] { return gone(0); });
    table_[0].unreachable = true;
  }
  const Judgement judgement = judge(table_, limits_);
  warn_of(judgement.slow);
  if (!judgement.lost) return {};
  return Verdict{judgement.lost->rank, judgement.lost->text};
}

/// Rank 0 prints the warning. Where rank 0 is itself slow, rank 1 does: rank 0 may wait for its terminal.
/// This thread, whose beat the others count, must not wait for a terminal or a disk.
void RankWatch::warn_of(const std::vector<Found>& slow) {
  for (const Found& found : slow) {
    table_[static_cast<std::size_t>(found.rank)].quiet = limits_.outside;
    const bool aloud = rank_ == (found.rank == 0 ? 1 : 0);
    if (rank_ == 0 || aloud) warnings_.emplace_back(found.text, aloud);
  }
  const bool busy =
      warning_.valid() && warning_.wait_for(std::chrono::seconds(0)) != std::future_status::ready;
  if (warnings_.empty() || busy) return;
  warning_ = std::async(std::launch::async, [this, now = std::exchange(warnings_, {})] {
    const BesideTraining beside;  // rank 0 writes: no other rank may take that for its progress
    const std::scoped_lock lock(warning_by_);
    for (const auto& [text, aloud] : now) try {
        if (warn_)
          warn_(text, aloud);
        else if (aloud)
          calls_.print("assay: warning: " + text + "\n");
      } catch (const std::exception&) {
        // A disk is full, or a stream is gone.
      }
  });
}

/// The first verdict in the store is that of all ranks; without a store, each machine has its own.
void RankWatch::conclude(Verdict verdict) {
  proposed_ = verdict;
  closed_ = !within(2, [this] { return news_.verdict || closed_; }) || closed_;
  if (news_.verdict) verdict = *news_.verdict;
  const bool other = verdict.rank != rank_;
  const bool reports = other && !news_.reported && is_to_report(verdict.rank);
  if (reports) report(verdict);
  within(3, [this] { return news_.reported || closed_; });
  enter(Stage::reported);
  if (other) end_process_of(verdict.rank);
  // Its end may be the store's: it goes last.
  if (rank_ == 0)
    within(1, [this] {
      for (std::size_t i = 1; i < read_.size(); ++i)  // behind its own
        if (!news_.rows[i].knows && !news_.gone[i]) return closed_;
      return true;
    });
  // Without a store, a late rank knows who reports by its process: that one goes last, after it had its time.
  if (closed_) within(reports ? 2 : 0.3, [&] { return reports && is_alone_here(verdict.rank); });
  // A rank that has failed ends with the code of its reason, by itself.
  if (row_.view().standing != Standing::failed) calls_.end();
  enter(Stage::over);
}

/// The lowest rank does that is left: rank 0 has the record, rank 1 may share its disk. Without a store, it
/// is the lowest of each machine.
bool RankWatch::is_to_report(int lost) const {
  if (rank_ == lost) return false;
  for (int r = 0; r < rank_; ++r)
    if (r != lost && !gone(r) && (here(r) || !closed_)) return false;
  return true;
}

bool RankWatch::is_alone_here(int lost) const {
  for (int r = 0; r < static_cast<int>(peers_.size()); ++r)
    if (r != rank_ && r != lost && here(r) && !gone(r)) return false;
  return true;
}

void RankWatch::report(const Verdict& verdict) {
  const std::scoped_lock lock(recording_);
  const std::string text = advice_ ? verdict.text + "; " + advice_() : verdict.text;
  // The terminal may be what the lost rank waited for.
  at_most(2, [text, print = calls_.print] { print("assay: error: " + text + "\n"); });
  if (verdict.rank == 0) end_process_of(0);  // it may hold the lock of its record
  if (record_) record_(text);
  has_reported_ = true;
}

/// A rank that is stopped, or does not go on: nothing else would end it. One that has failed ends by itself,
/// and first: its exit code is to be the job's.
void RankWatch::end_process_of(int rank) {
  const auto found = std::find(read_.begin(), read_.end(), rank);
  if (found == read_.end() || news_.rows.empty()) return;
  const Standing standing = news_.rows[static_cast<std::size_t>(found - read_.begin())].standing;
  const bool killed = standing == Standing::running && here(rank) &&
                      end_process(peers_[static_cast<std::size_t>(rank)].process);
  if (killed || standing == Standing::failed) within(killed ? 2 : 1, [&] { return gone(rank); });
}

/// Rank 0, which may serve the store, ends once all ranks have read what they had to.
void RankWatch::go_last() try {
  if (exchange_.valid()) exchange_.get();
  exchange(row_.view(), {}, false);
  const auto begin = Clock::now();
  store_->add("left", 1);
  while (rank_ == 0 && store_->add("left", 0) < std::ssize(peers_) && seconds_since(begin) < 10) pause(0.005);
} catch (const std::exception&) {
  // The store is gone: so is whoever could wait.
}

bool RankWatch::here(int rank) const {
  const auto space = [this](int r) -> const std::string& {
    return peers_[static_cast<std::size_t>(r)].process.space;
  };
  return space(rank) == space(rank_);
}

bool RankWatch::gone(int rank) const {
  return here(rank) && !is_alive(peers_[static_cast<std::size_t>(rank)].process);
}

/// Whether it holds, or comes to within that time; ranks exchange rows meanwhile.
template <class Holds>
bool RankWatch::within(double seconds, Holds&& holds) {
  for (const auto begin = Clock::now(); !holds(); pause(0.02)) {
    if (seconds_since(begin) > seconds) return false;
    turn(0.1);
  }
  return true;
}

void RankWatch::follow(std::function<std::int64_t()> reached) {
  const std::scoped_lock lock(mutex_);
  reached_ = std::move(reached);
}

void RankWatch::record_by(std::function<void(const std::string& text)> record,
                          std::function<std::string()> advice) {
  const std::scoped_lock lock(recording_);
  record_ = std::move(record), advice_ = std::move(advice);
}

void RankWatch::warn_by(std::function<void(const std::string& text, bool aloud)> warn) {
  const std::scoped_lock lock(warning_by_);
  warn_ = std::move(warn);
}

/// Returns once the others have read it: with this process the store may end.
void RankWatch::fail(const std::string& why) {
  row_.stand(Standing::failed, why);
  {
    const std::scoped_lock lock(mutex_);
    hurry_ = true;
    changed_.notify_all();
  }
  await(Stage::reported, 3);
}

void RankWatch::enter(Stage stage) {
  const std::scoped_lock lock(mutex_);
  stage_ = stage;
  changed_.notify_all();
}

void RankWatch::await(Stage stage, double seconds) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, std::chrono::duration<double>(seconds), [&] { return stage_ >= stage; });
}

/// A process that exits in the middle of a run would wait for the others in its exit handlers, MPI's among
/// them: it ends as soon as a heartbeat has said why.
void RankWatch::quit() {
  RankWatch* const watch = watch_of_process;
  if (!watch || watch->row_.view().standing != Standing::running) return;
  watch->row_.stand(Standing::failed, "its process exits in the middle of the run");
  pause(0.5);
  std::_Exit(static_cast<int>(ExitCode::peer_lost));
}

void RankWatch::leave() {
  row_.stand(Standing::left);
  stop();
}

}  // namespace assay::impl
