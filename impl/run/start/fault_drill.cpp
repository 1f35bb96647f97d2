#include "impl/run/start/fault_drill.hpp"

#include <ATen/cuda/Sleep.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <limits>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>

#include "spec/error.hpp"
#include "spec/text/quote.hpp"

namespace assay::impl::run {

namespace {
constexpr std::array kinds = {"kill", "stop", "error", "exit", "spin", "hang", "wait"};  // of DrillKind
constexpr std::array phases = {Doing::data_wait, Doing::forward, Doing::backward,  Doing::reduce,
                               Doing::clip,      Doing::update,  Doing::checkpoint};

/// Sets what the word names; false for another word.
bool read_word(const std::string& name, const std::string& value, FaultDrill& drill) {
  if (name == "kind") {
    const auto found = std::find(kinds.begin(), kinds.end(), value);
    drill.kind = static_cast<DrillKind>(found - kinds.begin());
    return found != kinds.end();
  }
  if (name == "phase") {
    const auto found =
        std::find_if(phases.begin(), phases.end(), [&](Doing doing) { return to_string(doing) == value; });
    if (found != phases.end()) drill.doing = *found;
    return found != phases.end();
  }
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc() || end != value.data() + value.size() || number < 0) return false;
  if (name == "rank") drill.rank = static_cast<int>(number);
  if (name == "step") drill.step = number;
  if (name == "stall") drill.stall_seconds = static_cast<double>(std::max<std::int64_t>(2, number));
  return name == "rank" || name == "step" || name == "stall";
}

template <class Call>
void wait_in(double seconds) {
  const Call call;
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

void strike(const FaultDrill& drill) {
  // The others name where this rank was at its last heartbeat, and trials compare that with the drill.
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  std::cerr << "assay: drill: the planted fault strikes\n" << std::flush;
  switch (drill.kind) {
    case DrillKind::kill:
      raise(SIGKILL);
      break;
    case DrillKind::stop:
      raise(SIGSTOP);
      break;
    case DrillKind::error:
      throw std::runtime_error("a fault that ASSAY_FAULT_DRILL has planted");
    case DrillKind::exit:
      std::exit(0);
    case DrillKind::spin:
      for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
    case DrillKind::hang:
      at::cuda::sleep(std::numeric_limits<std::int64_t>::max());
      break;
    case DrillKind::wait:
      (drill.doing == Doing::data_wait ? wait_in<DataCall> : wait_in<DiskCall>)(2 * drill.stall_seconds);
  }
}
}  // namespace

std::optional<FaultDrill> read_drill(const char* text) {
  if (!text || !*text) return {};
  FaultDrill drill;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const std::size_t middle = std::min(word.find('='), word.size() - 1);
    if (!read_word(word.substr(0, middle), word.substr(middle + 1), drill))
      throw UserError(ExitCode::usage,
                      "ASSAY_FAULT_DRILL=" + spec::quote(text) +
                          ": give kind=kill|stop|error|exit|spin|hang|wait rank=N step=N [stall=SECONDS] "
                          "phase=data_wait|forward|backward|reduce|clip|update|checkpoint, or "
                          "unset it: it is for drills alone");
  }
  return drill;
}

std::function<void(const RowView&)> planted(const FaultDrill& drill) {
  return [drill, backward_in = std::int64_t{0}](const RowView& row) mutable {
    if (row.doing == Doing::backward) backward_in = row.step;
    if (row.doing != drill.doing || row.step != drill.step) return;
    if (row.doing != Doing::reduce || backward_in == row.step) strike(drill);
  };
}

}  // namespace assay::impl::run
