#include "impl/logs/progress_line.hpp"

#include <algorithm>
#include <iostream>
#include <utility>

#include "impl/logs/terminal.hpp"
#include "spec/text/quantity.hpp"

namespace assay::impl::logs {

std::string progress_text(const std::string& work, std::int64_t done_bytes, std::int64_t all_bytes,
                          double seconds) {
  const double rate = static_cast<double>(done_bytes) / std::max(seconds, 1e-3),
               share = all_bytes > 0 ? static_cast<double>(done_bytes) / static_cast<double>(all_bytes) : 1;
  std::string text =
      work + "  " + spec::percent(share, 0) + " of " + spec::bytes(all_bytes) + ", " + spec::si(rate, "B/s");
  if (rate > 0) text += ", " + spec::duration(static_cast<double>(all_bytes - done_bytes) / rate) + " left";
  return text;
}

ProgressLine::ProgressLine(std::string work)
    : work_(std::move(work)),
      terminal_(detect_terminal().messages_is_terminal),
      begun_(Clock::now()),
      shown_(begun_ + std::chrono::milliseconds(1800)) {}

ProgressLine::~ProgressLine() {
  if (width_ > 0) std::cerr << '\r' << std::string(width_, ' ') << '\r' << std::flush;
}

void ProgressLine::show(std::int64_t done_bytes, std::int64_t all_bytes) {
  const auto now = Clock::now();
  if (!terminal_ || now < shown_ + std::chrono::milliseconds(200)) return;
  shown_ = now;
  const std::string text =
      progress_text(work_, done_bytes, all_bytes, std::chrono::duration<double>(now - begun_).count());
  width_ = std::max(width_, text.size());
  std::cerr << '\r' << text << std::string(width_ - text.size(), ' ') << std::flush;
}

}  // namespace assay::impl::logs
