#include "impl/run/run_log.hpp"

#include <c10/util/Exception.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <thread>
#include <utility>

#include "impl/checkpoint/folder.hpp"
#include "impl/run/start/run_folder.hpp"
#include "impl/run/warnings.hpp"
#include "impl/step/executor.hpp"
#include "spec/failure.hpp"
#include "spec/record/read.hpp"
#include "spec/record/run.hpp"
#include "spec/text/file.hpp"

namespace assay::impl::run {

using namespace spec::record;

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

/// Appends the end of a run to a record that another rank wrote, unless it has its end. Tries again for two
/// seconds while the lock of its writer, which was ended, is held. Errors: those of RecordWriter.
void append_end(const std::string& record, const RunEnd& end) {
  std::error_code unknown;
  if (!std::filesystem::exists(record, unknown)) return;  // on another host's disk
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
}  // namespace

void RunLog::begin(RunStart start, const std::string& directory) {
  start_ = std::move(start);
  directory_ = directory;
}

/// Earlier starts of the run.
void RunLog::read_what_is_there(const std::string& record) {
  goodput_.emplace();
  Tolerance tolerance{.places = checkpoint::places_in_record(directory_), .damage = {}};
  bool read = false;
  try {
    spec::FileStream file(record);
    if (file.peek() == std::istream::traits_type::eof() && tolerance.places.empty()) return;
    for_each_event(
        file, record, [&](const Event& event) { goodput_->add(event); }, &tolerance);
    read = true;
  } catch (const spec::FileFault& fault) {
    if (fault.kind() != spec::FileFault::Kind::missing) throw;
    if (tolerance.places.empty()) return;
    tolerance.damage.note(record + ": the record is missing, though " + tolerance.places.front().by +
                          " was saved behind a line of it; a new record is begun");
  } catch (const UserError& error) {
    tolerance.damage.note(error.what());
  }
  damage_ = tolerance.damage.sentences();
  // A place that is not found may be that of another run's checkpoint: only damaged lines leave steps out.
  if (!read || tolerance.damage.count > std::ssize(tolerance.places)) goodput_.reset();
}

void RunLog::open(std::int64_t log_every, bool tensorboard) {
  read_what_is_there(directory_ + "/run.jsonl");
  writer_.emplace(directory_ + "/run.jsonl");
  folder_.emplace(directory_);
  if (tensorboard) curves_.emplace(directory_);
  console_.emplace(std::cout, std::cerr, logs::detect_terminal(), log_every);
}

bool RunLog::move_to(const std::string& directory) {
  const std::scoped_lock lock(recording_);
  const bool whole = !writer_ || writer_->move_to(directory + "/run.jsonl");
  directory_ = directory;
  for (auto& [name, value] : start_.settings)
    if (name == "run.directory") value = directory;
  if (!writer_) return true;
  folder_.emplace(directory);
  if (!whole) writer_->write(start_);
  if (console_) console_->folder_is(start_);
  if (curves_)
    if (const auto lost = curves_->move_to(directory))
      say(Warning{.step = {}, .code = "tensorboard", .text = *lost});
  return whole;
}

/// Steps of this start are not done again in it.
void RunLog::count(const Event& event) {
  if (!goodput_) return;
  goodput_->add(event);
  if (std::holds_alternative<Step>(event) || std::holds_alternative<SkippedStep>(event)) goodput_->settle();
}

void RunLog::say(const Event& event, bool aloud) {
  const std::scoped_lock lock(recording_);
  if (writer_) count(event);
  // A step may still end after a rank was lost: the record ends with why.
  if (writer_ && !loss_recorded_) writer_->write(event);
  if (console_ && aloud) console_->show(event);
  if (curves_)
    if (const auto lost = curves_->write(event))
      say(Warning{.step = {}, .code = "tensorboard", .text = *lost});
  if (!writer_ || record_waits_) return;
  const auto waits = record_waits_warning(writer_->waiting(), writer_->path().string(), writer_->reason());
  record_waits_ = waits.has_value();  // before it is said, which comes here again
  warn(waits);
}

bool RunLog::warn(const std::optional<Warning>& warning) {
  if (warning) say(*warning);
  return warning.has_value();
}

void RunLog::enter(RunPart part) {
  const std::scoped_lock lock(recording_);
  clock_.enter(part);
}

void RunLog::step(Step step) {
  {
    const std::scoped_lock lock(recording_);
    ++steps_;
    tokens_ += step.tokens;
    seconds_ += step.seconds;
    data_wait_ += step.phases.data_wait;
    step.elapsed_seconds = clock_.seconds();
    norms_.add(step.gradient_norm);
    last_steps_.push_back(step);
    if (last_steps_.size() > final_loss_steps) last_steps_.erase(last_steps_.begin());
  }
  say(std::move(step));
}

/// What the steps so far come to, but for the final loss.
RunEnd RunLog::end_now(EndReason reason, ExitCode code, const std::optional<std::string>& message) const {
  return {.reason = reason,
          .exit_code = static_cast<std::int64_t>(code),
          .message = message,
          .steps = steps_,
          .tokens = tokens_,
          .seconds = seconds_,
          .tokens_per_second = seconds_ > 0 ? static_cast<double>(tokens_) / seconds_ : 0,
          .final_loss = {},
          .final_steps = {},
          .floor = start_.data.floor,
          .gap_closed = {},
          .goodput = clock_.goodput(tokens_, data_wait_),
          .run_goodput = {}};
}

std::string RunLog::place_on_disk() {
  const std::scoped_lock lock(recording_);
  try {
    if (!writer_) return "";
    writer_->sync(/*times=*/1);
    return writer_->place();
  } catch (const UserError&) {
    return "";  // it is tried again with every line, and at the end
  }
}

int RunLog::end(EndReason reason, ExitCode code, const std::optional<std::string>& message) {
  const std::scoped_lock lock(recording_);
  RunEnd event = end_now(reason, code, message);
  event.final_loss = mean_loss(last_steps_, final_loss_steps);
  if (event.final_loss) event.final_steps = std::min<std::int64_t>(final_loss_steps, event.steps);
  if (event.final_loss && event.floor) {
    const double share = gap_closed(*event.final_loss, *event.floor, start_.vocab);
    if (share >= 0) event.gap_closed = share;  // below a uniform guess it is a warning
  }
  warn(final_loss_warning(event, start_));
  warn(exploded_norm_warning(last_steps_, norms_));
  if (writer_ && goodput_) {
    GoodputOfStarts with_this = *goodput_;
    with_this.add(event);
    event.run_goodput = with_this.sum();
  }
  say(event);
  if (writer_) writer_->sync();
  return static_cast<int>(code);
}

void RunLog::record_failure(const std::exception& error) noexcept {
  const auto* torch = dynamic_cast<const c10::Error*>(&error);
  const bool non_finite = dynamic_cast<const NonFiniteError*>(&error) != nullptr;
  try {
    const Failure failure = failure_of(error);
    end(non_finite ? EndReason::non_finite : EndReason::error, failure.code,
        torch ? std::string(torch->what_without_backtrace()) : failure.text);
  } catch (...) {
  }
}

void RunLog::record_lost_rank(const std::string& text) {
  std::unique_lock lock(recording_, std::defer_lock);
  if (!lock.try_lock_for(std::chrono::seconds(2)) || std::exchange(loss_recorded_, true)) return;
  try {
    const RunEnd event = end_now(EndReason::error, ExitCode::peer_lost, text);
    if (!writer_) return append_end(directory_ + "/run.jsonl", event);
    writer_->write(event);
    writer_->sync();
  } catch (const std::exception&) {
    // The disk is full, too: the record ends without these words.
  }
}

}  // namespace assay::impl::run
