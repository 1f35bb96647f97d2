#include "impl/health/rank_watch.hpp"

#include <pthread.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <sstream>

#include "impl/comm/let_go.hpp"
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

/// Waits until it holds, or for that long.
template <class Holds>
void wait_until(Holds holds, double seconds) {
  for (const auto begin = Clock::now(); !holds() && seconds_since(begin) < seconds;) pause(0.01);
}

/// Waits for `work` that long at most: it goes on where it hangs, in a process that is about to end.
void at_most(double seconds, std::function<void()> work) {
  const auto done = std::make_shared<std::atomic<bool>>(false);
  std::thread([done, work = std::move(work)] {
    work();
    *done = true;
  }).detach();
  wait_until([&] { return done->load(); }, seconds);
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
  const std::string id = std::to_string(process.id) + " " + std::to_string(process.start);
  const auto hosts = communicator.all_gather(host), ids = communicator.all_gather(id),
             spaces = communicator.all_gather(process.space);
  for (std::size_t r = 0; r < hosts.size(); ++r) {
    Process& each = processes_.emplace_back(Process{.space = spaces[r]});
    std::istringstream(ids[r]) >> each.id >> each.start;
    SeenRank& seen = table_.emplace_back(SeenRank{.row = {}, .host = hosts[r]});
    seen.visible = rank_ == 0 || r == 0 || each.space == process.space;
    if (seen.visible) read_.push_back(static_cast<int>(r));
  }
  store_ = connect_to_job_store(communicator);
  if (rank_ == 0) store_->set("verdict", "");
  store_->set(key_of(rank_), bytes_of(row_.view()));
  communicator.barrier();
  static const bool registered = std::atexit(quit) == 0;
  if (registered) watch_of_process = this;
  thread_ = std::jthread([this](const std::stop_token& stop) { work(stop); });
}

RankWatch::~RankWatch() { stop(); }

void RankWatch::stop() {
  RankWatch* mine = this;
  watch_of_process.compare_exchange_strong(mine, nullptr);
  thread_.request_stop();
  if (thread_.joinable()) thread_.join();
}

void RankWatch::work(const std::stop_token& stop) {
  sigset_t all;  // signals are for the trainer's thread
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
  const double beat = processes_.size() <= 128 ? 0.1 : 0.4;  // one store answers all ranks
  for (; !stop.stop_requested(); pause(beat)) {
    turn(0.4);
    if (find()) return conclude();
  }
  if (row_.view().standing == Standing::left) leave_together();
}

/// Begins an exchange where none is under way, waits for it that long, and takes what it has brought. False:
/// the store is closed.
bool RankWatch::turn(double seconds) {
  if (closed_) return false;
  if (!exchange_.valid())
    exchange_ = std::async(std::launch::async, &RankWatch::exchange, this, row_.beat(), verdict_);
  const bool anew = exchange_.wait_for(std::chrono::duration<double>(seconds)) == std::future_status::ready;
  if (anew) try {
      news_ = exchange_.get();
    } catch (const std::exception&) {
      closed_ = true;
    }
  const double passed = seconds_since(std::exchange(read_at_, Clock::now()));
  for (std::size_t i = 0; i < news_.rows.size(); ++i) {
    SeenRank& seen = table_[static_cast<std::size_t>(read_[i])];
    // Of a store that does not answer, rank 0 alone is to blame.
    if (anew || read_[i] == 0) update(seen, news_.rows[i], passed);
    seen.gone = news_.gone[i];
  }
  return !closed_;
}

RankWatch::News RankWatch::exchange(const RowView& mine, const std::optional<Verdict>& proposed) {
  store_->set(key_of(rank_), bytes_of(mine));
  if (proposed) {
    const std::string text = std::to_string(proposed->rank) + (proposed->stays ? " 1" : " 0") +
                             (proposed->reported ? " 1 " : " 0 ") + proposed->text;
    if (proposed->reported)
      store_->set("verdict", text);
    else
      store_->set_first("verdict", text);
  }
  News news;
  std::vector<std::string> keys = {"verdict"};
  for (const int r : read_) {
    news.gone.push_back(gone(r));  // first: a process that was there has published what it had to
    keys.push_back(key_of(r));
  }
  const std::vector<std::string> texts = store_->get(keys);
  if (!texts[0].empty()) {
    Verdict& verdict = news.verdict.emplace(Verdict{});
    std::istringstream words(texts[0]);
    words >> verdict.rank >> verdict.stays >> verdict.reported;
    std::getline(words >> std::ws, verdict.text, '\0');
  }
  for (std::size_t i = 1; i < texts.size(); ++i)
    std::memcpy(&news.rows.emplace_back(), texts[i].data(), std::min(texts[i].size(), sizeof(RowView)));
  return news;
}

/// Whether a rank is lost: by the verdict of another one, or by its own judgement.
bool RankWatch::find() {
  if (news_.verdict) return true;
  if (closed_) {
    wait_until([this] { return gone(0); }, 1);
    table_[0].gone = gone(0), table_[0].unreachable = true;
  }
  const Judgement judgement = judge(table_, limits_);
  warn_of(judgement.slow);
  if (const auto& lost = judgement.lost) {
    const Standing standing = table_[static_cast<std::size_t>(lost->rank)].row.standing;
    verdict_ = Verdict{.rank = lost->rank, .stays = standing == Standing::failed, .text = lost->text};
  }
  return verdict_.has_value();
}

/// Rank 0 prints the warning. Where rank 0 is itself slow, rank 1 does: rank 0 may wait for its terminal.
/// This thread, whose beat the others count, must not wait for a terminal or a disk.
void RankWatch::warn_of(const std::vector<Found>& slow) {
  for (const Found& found : slow) table_[static_cast<std::size_t>(found.rank)].quiet = limits_.outside;
  if (slow.empty() || rank_ > 1) return;
  warning_ = std::async(std::launch::async, [this, slow, before = std::move(warning_)] {
    if (before.valid()) before.wait();
    const BesideTraining beside;  // rank 0 writes: no other rank may take that for its progress
    const std::scoped_lock lock(warning_of_);
    for (const Found& found : slow) try {
        const bool aloud = rank_ == (found.rank == 0 ? 1 : 0);
        if (record_.slow)
          record_.slow(found.text, aloud);
        else if (aloud)
          calls_.print("assay: warning: " + found.text + "\n");
      } catch (const std::exception&) {
        // A disk is full, or a stream is gone.
      }
  });
}

/// The first verdict in the store is that of all ranks; without a store, each machine has its own. The lowest
/// rank that is left reports it: rank 0 has the record, rank 1 may share its disk.
void RankWatch::conclude() {
  concludes_ = true;
  wait_until([this] { return !turn(0.1) || news_.verdict; }, 2);
  closed_ = closed_ || !news_.verdict;
  if (news_.verdict) verdict_ = news_.verdict;
  const int lost = verdict_->rank;
  const bool reports = lost != rank_ && !verdict_->reported && !others_left(lost, rank_);
  if (lost != no_rank && (lost != rank_ || verdict_->stays)) save_what_is_there();
  if (reports) report();
  wait_until([this] { return !turn(0.1) || news_.verdict->reported; }, 3);
  concluded_ = true;
  if (lost != rank_ && lost != no_rank) end_process_of(lost);
  // The reporter goes last. With rank 0 the store may end; without a store, a late rank knows by the
  // reporter's process that the loss is reported.
  const int all = static_cast<int>(processes_.size());
  if (reports) wait_until([&] { return turn(0.1), !others_left(lost, all); }, closed_ ? 2 : 1);
  // A rank that has failed ends with the code of its reason, by itself.
  if (row_.view().standing == Standing::running) calls_.end();
}

/// Whether a rank below that number is left, but for this one and the lost one; without a store, one here.
bool RankWatch::others_left(int lost, int below) const {
  for (int r = 0; r < below; ++r)
    if (r != rank_ && r != lost && !gone(r) && (here(r) || !closed_)) return true;
  return false;
}

void RankWatch::save_what_is_there() {
  const std::scoped_lock lock(reporting_);
  if (record_.save) record_.save(verdict_->rank, verdict_->stays);
}

void RankWatch::report() {
  const std::scoped_lock lock(reporting_);
  const std::string text = record_.advice ? verdict_->text + "; " + record_.advice() : verdict_->text;
  // The terminal may be what the lost rank waited for.
  at_most(2, [text, print = calls_.print] { print("assay: error: " + text + "\n"); });
  if (verdict_->rank == 0) end_process_of(0);  // it may hold the lock of its record
  if (record_.loss) record_.loss(text);
  verdict_->reported = true;
}

/// A rank that is stopped, or does not go on: nothing else would end it. One that has failed ends by itself,
/// and first: its exit code is to be the job's.
void RankWatch::end_process_of(int rank) {
  const bool by_itself = table_[static_cast<std::size_t>(rank)].row.standing != Standing::running;
  if (by_itself || (here(rank) && end_process(processes_[static_cast<std::size_t>(rank)])))
    wait_until([&] { return gone(rank); }, by_itself ? 1 : 2);
}

/// Ends once all whom it sees leave, too: with rank 0, which sees all, the store may end.
void RankWatch::leave_together() {
  const auto leaves = [this](int r) {
    const SeenRank& seen = table_[static_cast<std::size_t>(r)];
    return seen.gone || seen.row.standing == Standing::left;
  };
  wait_until([&] { return !turn(0.1) || std::all_of(read_.begin(), read_.end(), leaves); }, 10);
}

bool RankWatch::here(int rank) const {
  return processes_[static_cast<std::size_t>(rank)].space ==
         processes_[static_cast<std::size_t>(rank_)].space;
}

bool RankWatch::gone(int rank) const {
  return here(rank) && !is_alive(processes_[static_cast<std::size_t>(rank)]);
}

void RankWatch::record_by(WatchRecord record) {
  const std::scoped_lock lock(reporting_, warning_of_);
  record_ = std::move(record);
}

/// Returns once the others have read it, and all have saved: with this process the store may end.
void RankWatch::fail(const std::string& why) {
  if (row_.view().standing == Standing::running) row_.stand(Standing::failed, why);
  wait_until([this] { return concludes_.load(); }, 3);
  while (concludes_ && !concluded_) pause(0.05);
}

/// A process that exits in the middle of a run would wait for the others in its exit handlers: it ends as
/// soon as a heartbeat has said why.
void RankWatch::quit() {
  RankWatch* const watch = watch_of_process;
  if (!watch || watch->row_.view().standing != Standing::running) return;
  watch->row_.stand(Standing::exits, "its process exits in the middle of the run");
  pause(0.5);
  std::_Exit(static_cast<int>(ExitCode::peer_lost));
}

void RankWatch::leave() {
  row_.stand(Standing::left);
  stop();
}

}  // namespace assay::impl
