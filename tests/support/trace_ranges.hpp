#pragma once
// Ranges of a profile's trace, a file in the trace event format that Perfetto and Chrome open.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "spec/text/json.hpp"

namespace assay::tests {

/// A complete event of a trace, in microseconds.
struct TraceRange {
  std::string name;
  double begin = 0, end = 0;
};

/// The program's ranges on each thread, in order of their begin; of two that begin together the outer one
/// first. Expects what a viewer needs: numbers of process and thread, whose names metadata gives, and times
/// that are not negative.
inline std::vector<std::vector<TraceRange>> trace_ranges(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<TraceRange>> threads;
  std::set<std::int64_t> processes;
  std::set<std::pair<std::int64_t, std::int64_t>> named;
  const spec::document::Tree trace = spec::parse_json(text, file.string());
  const spec::document::Item events = trace.root().at("traceEvents");
  for (std::size_t i = 0; i < events.size(); ++i) {
    const spec::document::Item event = events[i];
    const std::string phase = event.at("ph").text(), name = event.at("name").text();
    const auto of = [&] { return std::pair(event.at("pid").integer(), event.at("tid").integer()); };
    if (phase == "M" && name == "process_name") processes.insert(of().first);
    if (phase == "M" && name == "thread_name") named.insert(of());
    const auto category = event.find("cat");
    if (phase != "X" || !category || category->text() != "user_annotation") continue;
    const double begin = event.at("ts").real(), length = event.at("dur").real();
    EXPECT_GE(begin, 0) << name;
    EXPECT_GE(length, 0) << name;
    threads[of()].push_back({name, begin, begin + length});
  }
  std::vector<std::vector<TraceRange>> all;
  for (auto& [thread, ranges] : threads) {
    EXPECT_TRUE(processes.contains(thread.first)) << "process " << thread.first << " has no name";
    EXPECT_TRUE(named.contains(thread)) << "thread " << thread.second << " has no name";
    std::stable_sort(ranges.begin(), ranges.end(), [](const TraceRange& a, const TraceRange& b) {
      return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
    });
    all.push_back(std::move(ranges));
  }
  return all;
}

/// How often each name is there. Expects that a thread's ranges nest, within a range of a step.
inline std::map<std::string, int> names_of_nested(const std::vector<std::vector<TraceRange>>& threads) {
  constexpr double rounding = 1e-2;  // [us]; a nanosecond is written
  std::map<std::string, int> names;
  for (const std::vector<TraceRange>& ranges : threads) {
    std::vector<TraceRange> open;
    for (const TraceRange& range : ranges) {
      ++names[range.name];
      while (!open.empty() && open.back().end <= range.begin + rounding / 10) open.pop_back();
      if (!open.empty()) {
        EXPECT_LE(range.end, open.back().end + rounding) << range.name << " in " << open.back().name;
      }
      const std::string& outermost = open.empty() ? range.name : open.front().name;
      // Gloo's own threads mark their sums themselves.
      EXPECT_TRUE(outermost.starts_with("step ") || outermost.starts_with("gloo:"))
          << range.name << " in " << outermost;
      open.push_back(range);
    }
  }
  return names;
}

}  // namespace assay::tests
