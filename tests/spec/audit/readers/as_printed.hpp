#pragma once
// Logs as trainers print them: how the tests read them.
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "spec/audit/invariants.hpp"
#include "spec/audit/readers/read_log.hpp"

namespace assay::spec::audit::as_printed {

/// All of it is read, and nothing contradicts.
inline RunRecord read(const std::string& log, const std::string& map = "") {
  std::istringstream in(log);
  ReadOptions options;
  options.map = map;
  RunRecord record = read_log(in, "log", options);
  EXPECT_EQ(contradictions(record), "");
  EXPECT_TRUE(record.foreign_lines.empty()) << record.foreign_lines.front().format;
  EXPECT_EQ(record.unread_lines, 0) << (record.unread_quotes.empty() ? "" : record.unread_quotes[0].text);
  return record;
}

/// The values of a field, step by step.
inline std::vector<double> values(const RunRecord& record, Field field) {
  std::vector<double> out;
  for (const Step& step : record.steps)
    if (step[field]) out.push_back(step[field]->value);
  return out;
}

inline double setting(const RunRecord& record, Setting name) {
  return record[name] ? record[name]->value : -1;
}

/// `line` once for each step from `first` to `last`, with @ replaced by its number.
inline std::string lines(int first, int last, const std::string& line) {
  std::string out;
  for (int step = first; step <= last; ++step)
    for (const char c : line) out += c == '@' ? std::to_string(step) : std::string(1, c);
  return out;
}

}  // namespace assay::spec::audit::as_printed
