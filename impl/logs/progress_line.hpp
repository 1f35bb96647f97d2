#pragma once
// A line on the terminal that says how far long work is.
#include <chrono>
#include <cstdint>
#include <string>

namespace assay::impl::logs {

/// On standard error, where that is a terminal, from 2 s after it was made: "checking token ids  42 % of 18.6
/// GiB, 1.10 GB/s, 9.8 s left". It is gone when the work is done.
class ProgressLine {
 public:
  explicit ProgressLine(std::string work);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void show(std::int64_t done_bytes, std::int64_t all_bytes);

 private:
  using Clock = std::chrono::steady_clock;
  std::string work_;
  bool terminal_;
  Clock::time_point begun_, shown_;
  std::size_t width_ = 0;  ///< of what stands on the terminal
};

/// What it shows after `seconds`.
std::string progress_text(const std::string& work, std::int64_t done_bytes, std::int64_t all_bytes,
                          double seconds);

}  // namespace assay::impl::logs
