#include "impl/health/fault_drill.hpp"

#include <ATen/cuda/Sleep.h>
#include <signal.h>

#include <charconv>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <limits>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "spec/error.hpp"
#include "spec/text/quote.hpp"

namespace assay::impl::run {

namespace {
[[noreturn]] void refuse_drill(const std::string& text) {
  throw UserError(ExitCode::usage,
                  "ASSAY_FAULT_DRILL=" + spec::quote(text) +
                      ": give kind=kill|stop|error|exit|spin|hang|wait rank=N step=N [stall=SECONDS] "
                      "phase=data_wait|forward|backward|reduce|clip|update|checkpoint, or "
                      "unset it: it is for drills alone");
}

std::int64_t number_of(const std::string& word, const std::string& text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (error != std::errc() || end != word.data() + word.size() || number < 0) refuse_drill(text);
  return number;
}

template <class Choice>
Choice one_of(const std::string& word, std::initializer_list<std::pair<const char*, Choice>> choices,
              const std::string& text) {
  for (const auto& [name, choice] : choices)
    if (word == name) return choice;
  refuse_drill(text);
}

template <class Call>
void wait_in(double seconds) {
  const Call call;
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}
}  // namespace

std::optional<FaultDrill> read_drill(const char* given) {
  if (!given || !*given) return {};
  const std::string text = given;
  FaultDrill drill;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const std::size_t middle = word.find('=');
    if (middle == std::string::npos) refuse_drill(text);
    const std::string name = word.substr(0, middle), value = word.substr(middle + 1);
    if (name == "kind")
      drill.kind = one_of<DrillKind>(value,
                                     {{"kill", DrillKind::kill},
                                      {"stop", DrillKind::stop},
                                      {"error", DrillKind::error},
                                      {"exit", DrillKind::exit},
                                      {"spin", DrillKind::spin},
                                      {"hang", DrillKind::hang},
                                      {"wait", DrillKind::wait}},
                                     text);
    else if (name == "rank")
      drill.rank = static_cast<int>(number_of(value, text));
    else if (name == "step")
      drill.step = number_of(value, text);
    else if (name == "stall")
      drill.stall_seconds = static_cast<double>(std::max<std::int64_t>(2, number_of(value, text)));
    else if (name == "phase")
      drill.doing = one_of<Doing>(value,
                                  {{"data_wait", Doing::data_wait},
                                   {"forward", Doing::forward},
                                   {"backward", Doing::backward},
                                   {"reduce", Doing::reduce},
                                   {"clip", Doing::clip},
                                   {"update", Doing::update},
                                   {"checkpoint", Doing::checkpoint}},
                                  text);
    else
      refuse_drill(text);
  }
  return drill;
}

void strike(const FaultDrill& drill) {
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

}  // namespace assay::impl::run
