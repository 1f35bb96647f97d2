#pragma once
// How reading a log is refused.
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <utility>

#include "spec/audit/readers/read_log.hpp"
#include "spec/error.hpp"

namespace assay::tests {

/// A log of nanoGPT that is read.
inline constexpr const char* two_steps =
    "iter 0: loss 10.9876, time 5500.11ms, mfu -100.00%\n"
    "iter 10: loss 9.1234, time 134.20ms, mfu 37.10%\n";

/// Code and message of the error that reading `log` ends in.
inline std::pair<ExitCode, std::string> refusal(const std::string& log,
                                                const spec::audit::ReadOptions& options = {}) {
  try {
    std::istringstream in(log);
    spec::audit::read_logs(in, "log", options);
  } catch (const UserError& error) {
    return {error.code(), error.what()};
  }
  return {ExitCode::done, ""};
}

/// It ends in one line, of that code, that says so.
inline void expect_refused(const std::string& log, ExitCode code, const std::string& says,
                           const spec::audit::ReadOptions& options = {}) {
  const auto [got, message] = refusal(log, options);
  EXPECT_EQ(static_cast<int>(got), static_cast<int>(code)) << message;
  EXPECT_NE(message.find(says), std::string::npos) << message;
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  EXPECT_LT(message.size(), 600u);
}
}  // namespace assay::tests
