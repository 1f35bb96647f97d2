// labels: unit golden
// The words by which readers pass over lines that are none of theirs stand in all that are.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "spec/audit/readers/foreign_lines.hpp"
#include "spec/audit/readers/read_log.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/simulated/run.hpp"

namespace assay::spec::audit::words_of_lines_test {
namespace {

using tests::LogFormat;

/// Step lines of `log` by trainer, each of which must hold a word of its trainer's.
void expect_words(std::istream& log, std::size_t& steps) {
  for (std::string line; std::getline(log, line);)
    for (const LineFormat& format : line_formats()) {
      if (!format.recognises(line)) continue;
      ++steps;
      EXPECT_TRUE(std::any_of(format.of_steps.begin(), format.of_steps.end(),
                              [&](std::string_view word) { return line.find(word) != std::string::npos; }))
          << format.format.name << ": " << line;
    }
}

TEST(WordsOfLinesSpec, StepLinesHoldAWordOfTheirTrainers) {
  for (std::size_t i = 0; i < tests::log_formats; ++i)
    for (std::uint64_t seed = 0; seed < 6; ++seed) {
      std::istringstream log(tests::render(tests::simulate(static_cast<LogFormat>(i), seed, 30)));
      std::size_t steps = 0;
      expect_words(log, steps);
    }
  std::size_t steps = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(tests::source_dir()) / "golden/logs")) {
    std::ifstream log(entry.path());
    expect_words(log, steps);
  }
  EXPECT_GT(steps, 50U);
}

/// Each trainer's steps in a log of another are noticed.
TEST(WordsOfLinesSpec, StepsOfEachTrainerAreNoticedInAnothersLog) {
  const std::string own = "iter 0: loss 10.9876, time 5500.11ms, mfu -100.00%\n";
  for (std::size_t i = 0; i < tests::log_formats; ++i) {
    const std::string log = tests::render(tests::simulate(static_cast<LogFormat>(i), 1, 30));
    std::istringstream lines(log), text(own + log);
    std::size_t of_others = 0;
    std::string other;
    for (std::string line; std::getline(lines, line);) {
      const auto& all = line_formats();
      const auto format =
          std::find_if(all.begin(), all.end(), [&](const LineFormat& f) { return f.recognises(line); });
      if (format == all.end() || format->format.name == "nanogpt") continue;
      other = format->format.name;
      ++of_others;
    }
    if (of_others == 0) continue;
    const std::vector<RunRecord> runs = read_logs(text, "log");
    ASSERT_EQ(runs.front().foreign_lines.size(), 1U) << other;
    EXPECT_EQ(runs.front().foreign_lines[0].format, other);
    EXPECT_EQ(runs.front().foreign_lines[0].count, static_cast<std::int64_t>(of_others)) << other;
  }
}

/// Rows of validations, of events: seen once they are passed over, whatever their numbers.
TEST(WordsOfLinesSpec, RowsThatSayNothingArePassedOver) {
  std::string log;
  for (int step = 1; step <= 3000; ++step) {
    log += "{\"step\": " + std::to_string(step) + ", \"loss\": 2.5, \"seconds\": 0.5}\n";
    if (step % 3 == 0)
      log += "{\"step\": " + std::to_string(step) + ", \"val_ppl\": " + std::to_string(step) + ".5}\n";
    if (step % 5 == 0) log += "{\"message\": \"saved\", \"files\": " + std::to_string(step) + "}\n";
  }
  log +=
      "{\"step\": 3001, \"loss\": 2.5}\n{\"step\": 3002, \"val_ppl\": 2.\n{\"message\": \"saved\", "
      "\"files\": 7\n";
  std::istringstream in(log);
  const RunRecord run = read_log(in, "log");
  EXPECT_EQ(run.steps_seen, 3001);
  EXPECT_EQ(run.unread_lines, 2);
}

}  // namespace
}  // namespace assay::spec::audit::words_of_lines_test
