#include "impl/health/lost_rank.hpp"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <memory>
#include <thread>
#include <utility>

#include "impl/comm/let_go.hpp"
#include "impl/logs/record_writer.hpp"
#include "impl/machine/host.hpp"
#include "spec/error.hpp"

namespace assay::impl::run {

namespace {
/// Whether the record's last whole line is a run_end.
bool has_its_end(const std::string& record) {
  constexpr std::streamoff most = 1 << 16;
  std::ifstream file(record, std::ios::binary | std::ios::ate);
  const std::streamoff size = file.tellg();
  if (!file || size <= 0) return false;
  const std::streamoff from = std::max<std::streamoff>(0, size - most);
  std::string tail(static_cast<std::size_t>(size - from), '\0');
  file.seekg(from);
  file.read(tail.data(), static_cast<std::streamsize>(tail.size()));
  if (!tail.empty() && tail.back() == '\n') tail.pop_back();
  return tail.substr(tail.rfind('\n') + 1).find("\"run_end\"") != std::string::npos;
}

/// Waits for `work` that long at most: it goes on where it hangs, in a process that is about to end.
void at_most(std::chrono::milliseconds patience, std::function<void()> work) {
  const auto done = std::make_shared<std::atomic<bool>>(false);
  std::thread([done, work = std::move(work)] {
    work();
    *done = true;
  }).detach();
  const auto until = std::chrono::steady_clock::now() + patience;
  while (!*done && std::chrono::steady_clock::now() < until)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
}
}  // namespace

Watching::Watching(Communicator& communicator, const WatchLimits& limits)
    : watch_(communicator, limits, host_name(),
             {.report = [this](const std::string& text) { report(text); },
              .record = [this](const std::string& text) { record(text); },
              .warn = [this](const std::string& text, bool aloud) { warn(text, aloud); },
              .end = [this] { end(); }}) {}

void Watching::record_by(std::function<void(const std::string& text)> record,
                         std::function<std::string()> advice) {
  const std::scoped_lock lock(mutex_);
  record_ = std::move(record);
  advice_ = std::move(advice);
}

void Watching::warn_by(std::function<void(const std::string& text, bool aloud)> warn) {
  const std::scoped_lock lock(warning_);
  warn_ = std::move(warn);
}

std::string Watching::with_advice(const std::string& text) {
  const std::scoped_lock lock(mutex_);
  return advice_ ? text + "; " + advice_() : text;
}

void Watching::report(const std::string& text) {
  // The terminal may be what the lost rank waited for.
  at_most(std::chrono::seconds(2),
          [line = "assay: error: " + with_advice(text) + "\n"] { std::cerr << line << std::flush; });
}

void Watching::record(const std::string& text) {
  const std::string whole = with_advice(text);
  const std::scoped_lock lock(mutex_);
  if (record_) record_(whole);
}

void Watching::warn(const std::string& text, bool aloud) try {
  const std::scoped_lock lock(warning_);
  if (warn_) return warn_(text, aloud);
  if (aloud) std::cerr << "assay: warning: " + text + "\n" << std::flush;
} catch (const std::exception&) {
  // A disk is full, or a stream is gone.
}

void Watching::end() {
  // A GPU's kernels wait for the rank that is lost, and so may those who try to end them.
  at_most(std::chrono::seconds(3), let_go_of_all);
  std::_Exit(static_cast<int>(ExitCode::peer_lost));
}

void append_end(const std::string& record, const spec::record::RunEnd& end) {
  if (!std::ifstream(record)) return;  // on another host's disk
  for (int turn = 0;; ++turn) {
    try {
      logs::RecordWriter writer(record);
      if (has_its_end(record)) return;
      writer.write(end);
      return writer.sync();
    } catch (const UserError& error) {
      if (turn == 20 || error.code() != ExitCode::usage) throw;
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  }
}

}  // namespace assay::impl::run
